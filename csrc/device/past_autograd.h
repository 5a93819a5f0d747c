// Past autograd, where a call records nothing: kernels for dispatch key AutogradLazy that go
// straight to the operator's kernel for dispatch key Lazy.
//
// PyTorch's generated autograd kernel finds out that it has nothing to record by copying each
// argument, which for a tensor that Python holds takes the GIL twice: a fifth of the time of a
// recorded operation. The kernel here looks at the arguments as they are, and hands a call that has
// anything to record, or other dispatch keys to honour, to the generated kernel. What a program
// registers for the alias key Autograd stands in the generated kernel's place, and sees those only.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <torch/library.h>

#include <optional>
#include <tuple>
#include <type_traits>

#include "device/unboxed.h"

namespace torch_lazy {

// The operator's autograd kernel for devices without one of their own: PyTorch's generated one,
// which a kernel for dispatch key AutogradLazy hides. The operator has no composite kernel, which
// would be found first. Keys above autograd have had their turn, though Python's dispatcher hands
// them on; it stays in charge of the keys below.
inline c10::DispatchKeySet to_generated_kernel(c10::DispatchKeySet keys) {
  return (keys & c10::after_autograd_keyset).add(c10::DispatchKey::AutogradOther);
}

// Whether the generated kernel would do more for an argument than go on below autograd: record a
// node or a tangent, or say that there is no tensor where one has to be.
inline bool needs_autograd(const at::Tensor& tensor) {
  if (!tensor.defined()) return true;
  if (!tensor.unsafeGetTensorImpl()->autograd_meta()) return false;
  return (tensor.requires_grad() && c10::GradMode::is_enabled()) ||
         tensor._fw_grad(/*level=*/0).defined();
}
inline bool needs_autograd(const std::optional<at::Tensor>& tensor) {
  return tensor && tensor->defined() && needs_autograd(*tensor);
}
inline bool needs_autograd(const at::ITensorListRef& tensors) {
  for (const at::Tensor& tensor : tensors)
    if (needs_autograd(tensor)) return true;
  return false;
}
inline bool needs_autograd(const at::TensorList& tensors) {
  return needs_autograd(at::ITensorListRef(tensors));
}
inline bool needs_autograd(const c10::List<std::optional<at::Tensor>>& tensors) {
  for (const std::optional<at::Tensor> tensor : tensors)
    if (needs_autograd(tensor)) return true;
  return false;
}
template <class Plain>
bool needs_autograd(const Plain&) {
  return false;
}

// Whether nothing between autograd and the kernel for dispatch key Lazy asks for the call. What
// `writes` has the key ADInplaceOrView for its versions alone, unless the caller counts them.
inline bool only_lazy_below(c10::DispatchKeySet keys, bool writes) {
  return (keys & c10::after_ADInplaceOrView_keyset).highestPriorityTypeId() ==
             c10::DispatchKey::Lazy &&
         (writes || !keys.has(c10::DispatchKey::ADInplaceOrView));
}

// For operators that return tensors which autograd takes for new, or the one that they write.
template <class Signature>
struct PastAutograd;

template <class R, class... Arguments>
struct PastAutograd<R(Arguments...)> {
  using Handle = c10::TypedOperatorHandle<R(Arguments...)>;
  static constexpr bool kWrites = std::is_same_v<R, at::Tensor&>;
  // The version of each tensor that is written has to be counted.
  static constexpr bool kFits =
      (0 + ... + int(std::is_same_v<Arguments, at::Tensor&>)) == int(kWrites);

  static R run(const Handle& handle, c10::DispatchKeySet keys, Arguments... arguments) {
    if ((needs_autograd(arguments) || ...)) {
      // The generated kernel copies each tensor more than once. Only the first copy, and the last
      // that goes, takes the GIL.
      [[maybe_unused]] const std::tuple kept(keep(arguments)...);
      return handle.redispatch(to_generated_kernel(keys), static_cast<Arguments>(arguments)...);
    }
    if (!only_lazy_below(keys, kWrites))
      return handle.redispatch(to_generated_kernel(keys), static_cast<Arguments>(arguments)...);
    const c10::DispatchKeySet below = keys & c10::after_ADInplaceOrView_keyset;
    const at::AutoDispatchBelowADInplaceOrView guard;
    if constexpr (kWrites) {
      at::Tensor& written = handle.redispatch(below, static_cast<Arguments>(arguments)...);
      if (keys.has(c10::DispatchKey::ADInplaceOrView))
        written.unsafeGetTensorImpl()->bump_version();
      return written;
    } else {
      return handle.redispatch(below, static_cast<Arguments>(arguments)...);
    }
  }

 private:
  static at::Tensor keep(const at::Tensor& tensor) { return tensor; }
  template <class Plain>
  static std::nullopt_t keep(const Plain&) {
    return std::nullopt;
  }
};

// Whether PyTorch has an autograd kernel to pass by, and one that is found for AutogradOther:
// behind a composite one (silu_backward's) it would not be. Autograd has to know of views, of
// changed metadata, and of what is written that the schema does not name (native_batch_norm's
// statistics), for which Python's dispatcher takes an operator apart.
bool may_go_past_autograd(const c10::OperatorHandle& op);

// The same, boxed, where the operator is one over lists of tensors: those of optimizers.
void register_boxed_past_autograd(const c10::OperatorHandle& op, torch::Library& autograd);

}  // namespace torch_lazy
