// Sharing memory with the world outside: DLPack, data pointers, storages, other processes.
#pragma once

#include <ATen/core/Tensor.h>

#include "base/api.h"

namespace torch_lazy {

// A tensor of the backend on the same memory as the lazy tensor. From then on every operation on
// that memory runs at the call, because others may read or write it at any time.
TORCH_LAZY_MODULE_API at::Tensor export_inner(const at::Tensor& lazy);

// A CPU tensor on the same memory, after the pending work on it, for a caller that reads it at once
// and keeps nothing of it. Undefined where the CPU cannot read the memory as it is.
TORCH_LAZY_MODULE_API at::Tensor readable_inner(const at::Tensor& lazy);

// A lazy tensor on the memory of a tensor of the execution device; operations on it run at the
// call.
TORCH_LAZY_MODULE_API at::Tensor import_inner(const at::Tensor& inner);

// Whether the storage, of any device, is a lazy one with memory inside. That of a tensor subclass
// which wraps others has a device only.
TORCH_LAZY_MODULE_API bool has_buffer(const c10::Storage& storage);

// The backend's memory of a lazy storage, after the pending work on it. For as long as operations
// are deferred the memory may be behind, so the caller reads or writes it at once; whoever keeps it
// asks for `shared`, and from then on operations on it run at the call. The buffer keeps its
// identity when its bytes move, into shared memory for instance: the lazy storage follows.
TORCH_LAZY_MODULE_API c10::Storage storage_buffer(const c10::Storage& storage, bool shared);

// A lazy storage on the memory of a storage of the execution device; operations on it run at the
// call.
TORCH_LAZY_MODULE_API c10::Storage storage_over(const c10::Storage& buffer);

// A lazy storage with memory of its own, without values.
TORCH_LAZY_MODULE_API c10::Storage new_storage(int64_t bytes);

// Gives a lazy storage another size, which keeps what fits of its bytes.
TORCH_LAZY_MODULE_API void resize_storage(const c10::Storage& storage, int64_t bytes);

}  // namespace torch_lazy
