// Which backend compiles windows.
#pragma once

#include <c10/core/DeviceType.h>

#include <string>

#include "base/api.h"

namespace torch_lazy {

// Where the library of a backend is that is not registered yet. Raises std::invalid_argument,
// naming what there is, where none has that name. May take the GIL.
using BackendFinder = std::string (*)(const std::string& name);
TORCH_LAZY_MODULE_API void set_backend_finder(BackendFinder finder);

// Told the name of a device that a backend's runtime has become (offload/), before it is used; more
// than once, it may be. May take the GIL.
using RuntimeDeviceListener = void (*)(const std::string& name);
TORCH_LAZY_MODULE_API void set_runtime_device_listener(RuntimeDeviceListener listener);

// Windows are compiled by this backend from now on: its library is loaded, it is made, and what
// other backends have compiled is forgotten; windows that are pending run as they would have.
// Raises where that fails, and changes nothing then. Must be called without a lock.
TORCH_LAZY_MODULE_API void select_backend(const std::string& name);

// The next lazy tensor is on a device of that type; what was compiled for another is forgotten.
// Nothing where the name is empty. Raises ValueError where lazy tensors live on another one.
TORCH_LAZY_MODULE_API void select_device(const std::string& name);

// Selects the backend that the environment named, when the device is first used: not when torch is
// imported. Where that fails, "cpu" stands in for it, and "reference" for that, with a warning.
TORCH_LAZY_MODULE_API void select_backend_of_environment();

// The type of device that the backend compiles for, the CPU for one that takes any. Selects the
// backend of the environment first.
TORCH_LAZY_MODULE_API c10::DeviceType device_type_of_backend();

}  // namespace torch_lazy
