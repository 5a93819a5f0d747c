// Operators of a device that has none of its own: the CPU's kernels, on CPU tensors over the host's
// side of mirrored storages.
#pragma once

namespace torch_lazy {

// For the key PrivateUse1, once a process.
void register_host_operators();

}  // namespace torch_lazy
