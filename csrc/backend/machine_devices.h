// Whether the machine has the devices that PyTorch was built for.
//
// PyTorch names the accelerator that it was built for on any machine, and guards of fake tensors
// count devices that are not there: the PyTorch for CUDA, which most people install, does so
// without a GPU, too. What is asked here is whether there is a driver. One that is found by its
// name is not initialized for it, since a process may fork after it was asked.
//
// Threads: any.
#pragma once

#include <c10/core/DeviceType.h>

#include "base/api.h"

namespace torch_lazy {

// Whether devices of the type may be there. Only of NVIDIA's it is known that they are not.
bool machine_may_have(c10::DeviceType type);

// Whether PyTorch has an accelerator here.
TORCH_LAZY_MODULE_API bool machine_has_accelerator();

}  // namespace torch_lazy
