// Processes that a script starts by torch.multiprocessing, and that share the machine's CPU as
// those of a launcher do: the CPU has a name for each of them in all of them. A script then says
// `model.to(rank)`, and need not run where there are as many devices. Other than a launcher's, such
// a process is lazy:0 unless it says otherwise.
#pragma once

#include <c10/core/Device.h>

#include "base/api.h"

namespace torch_lazy {

// In one of so many processes. Does nothing where lazy tensors live on another device, or a
// launcher has numbered the processes.
TORCH_LAZY_MODULE_API void share_cpu(c10::DeviceIndex processes);

// Makes lazy:N the current device; raises where there is none. Where the CPU is shared and no lazy
// tensor goes by another name, the CPU is lazy:N from now on. Does not choose the execution device.
TORCH_LAZY_MODULE_API void make_current(c10::DeviceIndex index);

}  // namespace torch_lazy
