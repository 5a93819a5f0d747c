// Views as autograd sees them on the CPU.
//
// PyTorch's kernels remember how to redo every view of a tensor whose device type it lists as
// unable to do as_strided, Lazy among them (c10::Device::supports_as_strided): two more objects on
// the heap for each view, other backward operators than the CPU's after a write through a view, and
// errors of its own where a view cannot be redone. Lazy tensors have strides, so these kernels make
// the view's autograd metadata as PyTorch's do for the CPU: base and geometry.
//
// A view that records no gradient goes straight to its kernel for dispatch key Lazy. One that does
// takes PyTorch's autograd kernel, which makes the backward node, without the part that makes view
// metadata; the node is then set on the view made here.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_conj_ops.h>
#include <ATen/ops/_neg_view_ops.h>
#include <ATen/ops/_reshape_alias_ops.h>
#include <ATen/ops/alias_ops.h>
#include <ATen/ops/as_strided_ops.h>
#include <ATen/ops/diagonal_ops.h>
#include <ATen/ops/expand_ops.h>
#include <ATen/ops/permute_ops.h>
#include <ATen/ops/select_ops.h>
#include <ATen/ops/slice_inverse_ops.h>
#include <ATen/ops/slice_ops.h>
#include <ATen/ops/split_ops.h>
#include <ATen/ops/split_with_sizes_ops.h>
#include <ATen/ops/squeeze_ops.h>
#include <ATen/ops/t_ops.h>
#include <ATen/ops/transpose_ops.h>
#include <ATen/ops/unbind_ops.h>
#include <ATen/ops/unfold_ops.h>
#include <ATen/ops/unsqueeze_ops.h>
#include <ATen/ops/view_as_complex_ops.h>
#include <ATen/ops/view_as_real_ops.h>
#include <ATen/ops/view_ops.h>
#include <c10/core/AutogradState.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/library.h>

#include <memory>
#include <tuple>
#include <vector>

#include "device/register.h"
#include "device/unboxed.h"

namespace torch_lazy {
namespace {

using torch::autograd::CreationMeta;
using torch::autograd::ViewFunc;

// The operator's autograd kernel for devices without one of their own: PyTorch's generated one,
// which the kernels here hide for lazy tensors.
c10::DispatchKeySet to_generated_kernel(c10::DispatchKeySet keys) {
  return keys.remove(c10::DispatchKey::AutogradFunctionality).add(c10::DispatchKey::AutogradOther);
}

// How a view that changes more than its geometry is redone: by its operator, on the geometry that
// the operator was given.
template <class Operator>
class RedoOnGeometry final : public ViewFunc {
 public:
  explicit RedoOnGeometry(at::TensorGeometry geometry) : geometry_(std::move(geometry)) {}
  at::Tensor operator()(const at::Tensor& root) const override {
    return Operator::call(root.as_strided_symint(geometry_.sym_sizes(), geometry_.sym_strides(),
                                                 geometry_.sym_storage_offset()));
  }
  std::unique_ptr<ViewFunc> clone_and_set(std::optional<std::vector<c10::SymInt>>,
                                          std::optional<std::vector<at::Tensor>>) const override {
    return std::make_unique<RedoOnGeometry>(geometry_);
  }

 private:
  at::TensorGeometry geometry_;
};

// What autograd knows of a tensor that a generated kernel returned.
struct History {
  explicit History(const at::Tensor& tensor)
      : edge(tensor.grad_fn(), tensor.output_nr()), tangent(tensor._fw_grad(/*level=*/0)) {}

  torch::autograd::Edge edge;
  at::Tensor tangent;
};

// `made` as a view of `self`; `made` has no autograd metadata yet. `redo` is set where geometry
// does not say enough.
at::Tensor as_view_of(const at::Tensor& self, const at::Tensor& made, CreationMeta creation,
                      std::unique_ptr<ViewFunc> redo) {
  const auto* meta = torch::autograd::impl::get_view_autograd_meta(self);
  if (!redo || !meta || !meta->has_bw_view() || meta->get_backward_view().has_view_fn())
    return torch::autograd::as_view(self, made, true, true, std::move(redo), nullptr, creation);
  // `self` is known by its geometry alone: `redo` starts from the base of both.
  return torch::autograd::as_view(
      meta->get_backward_view().base_, made, true, true, std::move(redo), nullptr,
      torch::autograd::propagate_creation_meta(meta->get_creation_meta(), creation));
}

// As above, for a tensor that a generated kernel gave a history.
at::Tensor as_view_with_history(const at::Tensor& self, const at::Tensor& made,
                                CreationMeta creation, std::unique_ptr<ViewFunc> redo) {
  History history(made);
  made.unsafeGetTensorImpl()->set_autograd_meta(nullptr);
  at::Tensor view = as_view_of(self, made, creation, std::move(redo));
  if (history.edge.function)
    torch::autograd::impl::set_gradient_edge(view, std::move(history.edge));
  if (history.tangent.defined())
    view._set_fw_grad(history.tangent, /*level=*/0, /*is_inplace_op=*/false);
  return view;
}

// Whether PyTorch's kernel would add anything but view metadata.
bool has_history(const at::Tensor& self) {
  return (c10::GradMode::is_enabled() && self.requires_grad()) ||
         self._fw_grad(/*level=*/0).defined();
}

template <class Operator, class Signature = typename Operator::schema>
struct AutogradView;

template <class Operator, class R, class... Rest>
struct AutogradView<Operator, R(const at::Tensor&, Rest...)> {
  static constexpr bool kSeveral = std::is_same_v<R, std::vector<at::Tensor>>;
  // These operators take nothing but the tensor.
  static constexpr bool kChangesMetadata =
      sizeof...(Rest) == 0 && !std::is_same_v<Operator, at::_ops::alias> &&
      !std::is_same_v<Operator, at::_ops::t> && !std::is_same_v<Operator, at::_ops::squeeze>;

  static R kernel(c10::DispatchKeySet keys, const at::Tensor& self, Rest... rest) {
    const c10::AutogradState& state = c10::AutogradState::get_tls_state();
    if (!keys.has(c10::DispatchKey::ADInplaceOrView) || self.is_inference() ||
        state.get_view_replay_enabled())
      return Operator::redispatch(to_generated_kernel(keys), self, rest...);

    CreationMeta creation = kSeveral ? CreationMeta::MULTI_OUTPUT_NODE : CreationMeta::DEFAULT;
    if (state.get_inference_mode())
      creation = CreationMeta::INFERENCE_MODE;
    else if (!state.get_grad_mode())
      creation = CreationMeta::NO_GRAD_MODE;

    if (!has_history(self)) {
      R made = below_autograd(keys & c10::after_ADInplaceOrView_keyset, self, rest...);
      if constexpr (kSeveral)
        for (at::Tensor& one : made) one = as_view_of(self, one, creation, nullptr);
      else
        made = as_view_of(self, made, creation, redo(self));
      return made;
    }
    R made = Operator::redispatch(
        to_generated_kernel(keys).remove(c10::DispatchKey::ADInplaceOrView), self, rest...);
    if constexpr (kSeveral)
      for (at::Tensor& one : made) one = as_view_with_history(self, one, creation, nullptr);
    else
      made = as_view_with_history(self, made, creation, redo(self));
    return made;
  }

 private:
  static R below_autograd(c10::DispatchKeySet keys, const at::Tensor& self, Rest... rest) {
    // The usual case, without asking the dispatcher for what it would answer.
    if constexpr (!kChangesMetadata)
      if (keys.highestPriorityTypeId() == c10::DispatchKey::Lazy)
        return Unboxed<Operator>::kernel(self, rest...);
    const at::AutoDispatchBelowADInplaceOrView below;
    return Operator::redispatch(keys, self, rest...);
  }

  static std::unique_ptr<ViewFunc> redo(const at::Tensor& self) {
    if constexpr (kChangesMetadata)
      return std::make_unique<RedoOnGeometry<Operator>>(at::TensorGeometry(self));
    else
      return nullptr;
  }
};

template <class... Operators>
void register_views(torch::Library& library) {
  const auto add = [&]<class Operator>(Operator) {
    const std::string overload = Operator::overload_name;
    const std::string name = Operator::name + (overload.empty() ? "" : "." + overload);
    library.impl(name.c_str(), &AutogradView<Operator>::kernel);
  };
  (add(Operators{}), ...);
}

}  // namespace

void register_view_autograd(torch::Library& library) {
  register_views<
      at::_ops::_conj, at::_ops::_neg_view, at::_ops::_reshape_alias, at::_ops::alias,
      at::_ops::as_strided, at::_ops::diagonal, at::_ops::expand, at::_ops::permute,
      at::_ops::select_int, at::_ops::slice_Tensor, at::_ops::slice_inverse, at::_ops::split_Tensor,
      at::_ops::split_with_sizes, at::_ops::squeeze, at::_ops::squeeze_dim, at::_ops::squeeze_dims,
      at::_ops::t, at::_ops::transpose_int, at::_ops::unbind_int, at::_ops::unfold,
      at::_ops::unsqueeze, at::_ops::view, at::_ops::view_as_complex, at::_ops::view_as_real>(
      library);
}

}  // namespace torch_lazy
