// Indices out of range, which kernels find while they run.
//
// A word of the host's memory, which devices see, takes the ticket of the operation: a kernel reads
// row 0 in the place of the one that is not there, and goes on. Whoever has waited for the device
// next raises the error (backend/late_failure.h), and what was computed meanwhile is not worth
// anything. Eager operators end the whole process's use of the device at such an index.
//
// Threads: any.
#pragma once

namespace torch_lazy::cuda {

// The word's address on every device. Made on first use, with the calling thread's context; raises
// c10::Error where there is no memory.
void* index_failure_word();

}  // namespace torch_lazy::cuda
