// Lazy tensors whose object PyTorch made.
//
// `parameter.data = lazy` gives a CPU tensor's object the storage and the keys of a lazy tensor,
// and leaves the object: a plain TensorImpl, which optimizers, hooks and modules go on referring
// to. It has no room for what a LazyTensorImpl has beside it, so it keeps one, its stand-in, in its
// backend meta: a tensor on the same LazyStorage, with the same metadata. Kernels see the stand-in;
// the object that holds it is the truth about metadata, and follows it when an operation changes
// them.
#pragma once

#include <c10/core/TensorImpl.h>

#include "device/lazy_tensor.h"

namespace torch_lazy {

// Lets a tensor that takes over the data of `source` next (TensorImpl::shallow_copy_from) get a
// stand-in of its own, whatever the class of its object.
void prepare_stand_in(const at::Tensor& source);

}  // namespace torch_lazy
