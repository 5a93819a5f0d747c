// Keys of tensors that need kernels above the backend's.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKeySet.h>

namespace torch_lazy {

constexpr c10::DispatchKeySet kSpecialKeys({c10::DispatchKey::Conjugate, c10::DispatchKey::Negative,
                                            c10::DispatchKey::ZeroTensor});

// Whether the dispatcher itself has to choose the tensor's kernel: for some operators these keys
// fall through.
inline bool has_special_key(const at::Tensor& tensor) {
  return !(tensor.key_set() & kSpecialKeys).empty();
}

}  // namespace torch_lazy
