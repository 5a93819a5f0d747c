// Whether two tensors over one storage have the same elements in the same order.
#pragma once

#include <ATen/core/Tensor.h>

namespace torch_lazy {

inline bool are_same_elements(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.strides() == b.strides() &&
         a.storage_offset() == b.storage_offset() && a.dtype() == b.dtype() &&
         a.is_conj() == b.is_conj() && a.is_neg() == b.is_neg();
}

}  // namespace torch_lazy
