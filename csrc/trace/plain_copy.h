// Copies that only move bytes, without the dispatcher and without an iterator over elements.
#pragma once

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>

#include <cstring>
#include <typeinfo>

namespace torch_lazy {

// The CPU's tensor, not one that carries its key and keeps its values elsewhere.
inline bool is_plain_cpu(const at::TensorBase& tensor) {
  const c10::DispatchKeySet keys = tensor.key_set();
  return keys.has(c10::DispatchKey::CPU) && !keys.has_any(c10::python_ks) &&
         typeid(*tensor.unsafeGetTensorImpl()) == typeid(c10::TensorImpl);
}

// Whether the elements of both lie in memory in the same order, with the same bits for the same
// values, and are few enough for one thread.
inline bool is_plain_copy(const c10::TensorImpl& from, const c10::TensorImpl& to) {
  constexpr int64_t kMostElements = 32768;  // where ATen's own copy begins to use threads
  constexpr c10::DispatchKeySet kOtherValues(
      {c10::DispatchKey::Conjugate, c10::DispatchKey::Negative, c10::DispatchKey::ZeroTensor});
  return from.dtype() == to.dtype() && from.numel() <= kMostElements &&
         !(from.key_set() | to.key_set()).has_any(kOtherValues) && from.sizes() == to.sizes() &&
         ((from.is_contiguous() && to.is_contiguous()) ||
          (from.strides() == to.strides() && from.is_non_overlapping_and_dense()));
}

// `to` is at least `from.numel()` elements that is_plain_copy() accepts. They may be the same.
inline void copy_plainly(const at::TensorBase& from, void* to) {
  if (from.numel() > 0) std::memmove(to, from.const_data_ptr(), from.nbytes());
}

// A copy of the same strides, in a tenth of what `clone` takes for a number. Undefined for what is
// no plain CPU tensor, has gaps, or has elements that is_plain_copy() refuses.
inline at::Tensor plain_clone(const at::Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (!is_plain_cpu(tensor) || !tensor.is_non_overlapping_and_dense() || !is_plain_copy(impl, impl))
    return {};
  at::Tensor copy =
      at::detail::empty_strided_cpu(tensor.sizes(), tensor.strides(), tensor.scalar_type());
  copy_plainly(tensor, copy.mutable_data_ptr());
  return copy;
}

}  // namespace torch_lazy
