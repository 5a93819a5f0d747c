// Generators of device `lazy`: those of the execution device, which say they are on device lazy. A
// device that has none of its own draws from PyTorch's of the CPU.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <optional>

#include "base/api.h"

namespace torch_lazy {

// A generator of its own for lazy:`index`, seeded as a new one of the execution device is.
TORCH_LAZY_MODULE_API at::Generator make_lazy_generator(c10::DeviceIndex index);

// The default generator of lazy:`index`. It has no state of its own: it is the default generator
// that the execution device draws from where a call names none.
TORCH_LAZY_MODULE_API at::Generator default_lazy_generator(c10::DeviceIndex index);

// The default generator behind it.
at::Generator inner_default_generator(c10::DeviceIndex index);

// The generator behind one of device lazy; another generator as it is, a CPU generator among them.
// The kernels inside draw from that.
at::Generator inner_generator(const at::Generator& generator);
std::optional<at::Generator> inner_generator(const std::optional<at::Generator>& generator);

}  // namespace torch_lazy
