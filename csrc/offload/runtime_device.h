// A device of PyTorch made of a backend's DeviceRuntime: under the key PrivateUse1 and the
// runtime's name it has memory, streams, events and hooks, and for every operator the CPU's kernel
// (host_operators.h).
#pragma once

#include <c10/core/Allocator.h>

#include <cstdint>

#include "backend/device_runtime.h"
#include "base/api.h"

namespace torch_lazy {

// Registers it with PyTorch, once a process: raises where another runtime, or somebody else, has
// the key already, which PyTorch has one of. The runtime lives as long as the process.
void register_runtime_device(DeviceRuntime& runtime);

// The registered one. Raises where there is none.
TORCH_LAZY_MODULE_API DeviceRuntime& offload_runtime();
bool has_offload_runtime();
// Whether that is where lazy tensors live: what has no kernel for the device can run on the host.
TORCH_LAZY_MODULE_API bool is_offloaded();

// Bytes of device memory that tensors have: now, and the most since the peak was reset.
struct OffloadMemory {
  int64_t allocated = 0, peak = 0;
};
TORCH_LAZY_MODULE_API OffloadMemory offload_memory();
TORCH_LAZY_MODULE_API void reset_peak_offload_memory();

}  // namespace torch_lazy
