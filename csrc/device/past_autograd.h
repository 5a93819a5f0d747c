// Past autograd, where a call records nothing: from the dispatcher straight to an operator's kernel
// for dispatch key Lazy.
//
// PyTorch's generated autograd kernel finds out that it has nothing to record by copying each
// argument, which for a tensor that Python holds takes the GIL twice: a tenth of the time of a
// recorded operation. The kernel here looks at the arguments as they are, and hands a call that has
// anything to record, or other dispatch keys to honour, to the generated kernel.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <torch/library.h>

#include <optional>
#include <type_traits>

#include "device/unboxed.h"

namespace torch_lazy {

// The operator's autograd kernel for devices without one of their own: PyTorch's generated one,
// which a kernel for dispatch key AutogradLazy hides. Keys above autograd have had their turn,
// though Python's dispatcher hands them on.
inline c10::DispatchKeySet to_generated_kernel(c10::DispatchKeySet keys) {
  return (keys & c10::after_autograd_keyset).add(c10::DispatchKey::AutogradOther);
}

// Whether the generated kernel of an operator would record a node, or a tangent, for an argument.
inline bool has_history(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.unsafeGetTensorImpl()->autograd_meta()) return false;
  return (c10::GradMode::is_enabled() && tensor.requires_grad()) ||
         tensor._fw_grad(/*level=*/0).defined();
}
inline bool has_history(const std::optional<at::Tensor>& tensor) {
  return tensor && has_history(*tensor);
}
template <class Tensors>
bool any_has_history(const Tensors& tensors) {
  for (const auto& tensor : tensors)
    if (has_history(tensor)) return true;
  return false;
}
inline bool has_history(const at::ITensorListRef& tensors) {
  return any_has_history(tensors);
}
inline bool has_history(const at::TensorList& tensors) {
  return any_has_history(tensors);
}
inline bool has_history(const c10::List<std::optional<at::Tensor>>& tensors) {
  for (const std::optional<at::Tensor> tensor : tensors)
    if (has_history(tensor)) return true;
  return false;
}
template <class Plain>
bool has_history(const Plain&) {
  return false;
}

// For operators that return new tensors, or the one that they write.
template <class Operator, class Signature = typename Operator::schema>
struct PastAutograd;

template <class Operator, class R, class... Arguments>
struct PastAutograd<Operator, R(Arguments...)> {
  static_assert(!std::is_void_v<R>, "the tensors that are written are not known");

  static R kernel(c10::DispatchKeySet keys, Arguments... arguments) {
    const c10::DispatchKeySet below = keys & c10::after_ADInplaceOrView_keyset;
    if (below.highestPriorityTypeId() != c10::DispatchKey::Lazy || (has_history(arguments) || ...))
      return Operator::redispatch(to_generated_kernel(keys), arguments...);
    if constexpr (std::is_same_v<R, at::Tensor&>) {
      at::Tensor& written = Unboxed<Operator>::kernel(arguments...);
      // What PyTorch's kernel for this key does; callers mask it who count versions themselves.
      if (keys.has(c10::DispatchKey::ADInplaceOrView))
        written.unsafeGetTensorImpl()->bump_version();
      return written;
    } else {
      return Unboxed<Operator>::kernel(arguments...);
    }
  }
};

// Registers both kernels of each operator: for dispatch key Lazy in `library`, and in `autograd`
// for AutogradLazy. Where PyTorch has no autograd kernel, there is none to pass by.
template <class... Operators>
void register_past_autograd(torch::Library& library, torch::Library& autograd) {
  register_unboxed<Operators...>(library);
  const auto add = [&]<class Operator>(Operator) {
    const c10::OperatorHandle op =
        c10::Dispatcher::singleton().findSchemaOrThrow(Operator::name, Operator::overload_name);
    if (op.hasKernelForDispatchKey(c10::DispatchKey::Autograd))
      register_kernels<PastAutograd, Operator>(autograd);
  };
  (add(Operators{}), ...);
}

}  // namespace torch_lazy
