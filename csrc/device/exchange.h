// Sharing memory with the world outside: DLPack, data pointers.
#pragma once

#include <ATen/core/Tensor.h>

namespace torch_lazy {

// A tensor of the backend on the same memory as the lazy tensor. From then on every operation on
// that memory runs at the call, because others may read or write it at any time.
at::Tensor export_inner(const at::Tensor& lazy);

// A lazy tensor on the memory of a CPU tensor; operations on it run at the call.
at::Tensor import_inner(const at::Tensor& inner);

}  // namespace torch_lazy
