// The operators of ops/philox_operators.h on CUDA, for where they run at the call: the elements of
// a stream that kernels of windows draw.
#pragma once

namespace torch_lazy::cuda {

// Registers them, once a process: from then on draws on lazy tensors that live on CUDA are made by
// key. Each kernel is compiled when it first runs, or taken from the disk.
void register_random_kernels();

}  // namespace torch_lazy::cuda
