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
#include <ATen/TensorGeometry.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_conj_ops.h>
#include <ATen/ops/_neg_view_ops.h>
#include <ATen/ops/_nested_view_from_buffer_ops.h>
#include <ATen/ops/_nested_view_from_jagged_ops.h>
#include <ATen/ops/_reshape_alias_ops.h>
#include <ATen/ops/alias_ops.h>
#include <ATen/ops/as_strided_ops.h>
#include <ATen/ops/diagonal_ops.h>
#include <ATen/ops/expand_ops.h>
#include <ATen/ops/permute_ops.h>
#include <ATen/ops/select_ops.h>
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
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/immortal_library.h"
#include "device/lazy_tensor.h"
#include "device/past_autograd.h"
#include "device/register.h"
#include "device/unboxed.h"

namespace torch_lazy {
namespace {

using torch::autograd::CreationMeta;
using torch::autograd::ViewFunc;

// How a view that changes more than its geometry is redone: by its operator, on what the operator
// was given. Where that is a view known by its geometry, the base of both is given instead.
template <class Operator>
class Redo final : public ViewFunc {
 public:
  explicit Redo(std::optional<at::TensorGeometry> of_base) : of_base_(std::move(of_base)) {}
  at::Tensor operator()(const at::Tensor& given) const override {
    if (!of_base_) return Operator::call(given);
    return Operator::call(given.as_strided_symint(of_base_->sym_sizes(), of_base_->sym_strides(),
                                                  of_base_->sym_storage_offset()));
  }
  std::unique_ptr<ViewFunc> clone_and_set(std::optional<std::vector<c10::SymInt>>,
                                          std::optional<std::vector<at::Tensor>>) const override {
    return std::make_unique<Redo>(of_base_);
  }

 private:
  std::optional<at::TensorGeometry> of_base_;
};

// Whether `tensor` is a view whose history is rebuilt from its geometry.
bool is_known_by_geometry(const at::Tensor& tensor) {
  const auto* meta = torch::autograd::impl::get_view_autograd_meta(tensor);
  return meta && meta->has_bw_view() && !meta->get_backward_view().has_view_fn();
}

// How a view known by its base and geometry is redone.
class RedoGeometry final : public ViewFunc {
 public:
  explicit RedoGeometry(at::TensorGeometry geometry) : geometry_(std::move(geometry)) {}
  at::Tensor operator()(const at::Tensor& base) const override {
    return base.as_strided_symint(geometry_.sym_sizes(), geometry_.sym_strides(),
                                  geometry_.sym_storage_offset());
  }
  std::unique_ptr<ViewFunc> clone_and_set(std::optional<std::vector<c10::SymInt>>,
                                          std::optional<std::vector<at::Tensor>>) const override {
    return std::make_unique<RedoGeometry>(geometry_);
  }

 private:
  at::TensorGeometry geometry_;
};

// What autograd knows of a tensor that a generated kernel returned.
struct History {
  explicit History(const at::Tensor& tensor)
      : edge(tensor.grad_fn(), tensor.output_nr()), tangent(tensor._fw_grad(/*level=*/0)) {}

  void give(const at::Tensor& view) {
    if (edge.function) torch::autograd::impl::set_gradient_edge(view, std::move(edge));
    if (tangent.defined()) view._set_fw_grad(tangent, /*level=*/0, /*is_inplace_op=*/false);
  }

  torch::autograd::Edge edge;
  at::Tensor tangent;
};

// `made` as a view of `self`; `made` has no autograd metadata yet. `redo` is set where geometry
// does not say enough.
at::Tensor as_view_of(const at::Tensor& self, const at::Tensor& made, CreationMeta creation,
                      std::unique_ptr<ViewFunc> redo) {
  if (!redo || !is_known_by_geometry(self))
    return torch::autograd::as_view(self, made, true, true, std::move(redo), nullptr, creation);
  const auto* meta = torch::autograd::impl::get_view_autograd_meta(self);
  return torch::autograd::as_view(
      meta->get_backward_view().base_, made, true, true, std::move(redo), nullptr,
      torch::autograd::propagate_creation_meta(meta->get_creation_meta(), creation));
}

// As above, for a tensor that a generated kernel gave a history.
at::Tensor as_view_with_history(const at::Tensor& self, const at::Tensor& made,
                                CreationMeta creation, std::unique_ptr<ViewFunc> redo) {
  torch::autograd::throw_error_if_base_and_tensor_are_same(self, made);
  History history(made);
  // Python's handlers and composite kernels below may have made it a view by PyTorch's kernels.
  made.unsafeGetTensorImpl()->set_autograd_meta(nullptr);
  at::Tensor view = as_view_of(self, made, creation, std::move(redo));
  history.give(view);
  return view;
}

// `self`, or a view like it that carries the function which redoes it. PyTorch chains a view with a
// function onto a base, or onto a view with a function, and onto no other on this type of device.
at::Tensor redoable(const at::Tensor& self) {
  if (!is_known_by_geometry(self)) return self;
  at::Tensor made = [&] {
    const at::AutoDispatchBelowADInplaceOrView below;
    return at::_ops::alias::call(self);
  }();
  const auto* meta = torch::autograd::impl::get_view_autograd_meta(self);
  const at::Tensor& base = meta->get_backward_view().base_;
  const auto to_base = [geometry = at::TensorGeometry(base)](const at::Tensor& view) {
    return RedoGeometry(geometry)(view);
  };
  at::Tensor view = torch::autograd::as_view(
      base, made, true, true, std::make_unique<RedoGeometry>(at::TensorGeometry(self)), to_base,
      meta->get_creation_meta());
  History history(self);
  history.edge = torch::autograd::impl::gradient_edge(self);  // that of a leaf, too
  history.give(view);
  return view;
}

template <class Operator, class Signature = typename Operator::schema>
struct AutogradView;

template <class Operator, class R, class... Rest>
struct AutogradView<Operator, R(const at::Tensor&, Rest...)> {
  static constexpr bool kSeveral = std::is_same_v<R, std::vector<at::Tensor>>;
  static constexpr bool kChangesMetadata = std::is_same_v<Operator, at::_ops::_conj> ||
                                           std::is_same_v<Operator, at::_ops::_neg_view> ||
                                           std::is_same_v<Operator, at::_ops::view_as_complex> ||
                                           std::is_same_v<Operator, at::_ops::view_as_real>;

  static R kernel(c10::DispatchKeySet keys, const at::Tensor& self, Rest... rest) {
    const c10::AutogradState& state = c10::AutogradState::get_tls_state();
    if (!keys.has(c10::DispatchKey::ADInplaceOrView) || self.is_inference())
      return Operator::redispatch(to_generated_kernel(keys), self, rest...);
    if (state.get_view_replay_enabled())
      return Operator::redispatch(to_generated_kernel(keys), redoable(self), rest...);

    CreationMeta creation = kSeveral ? CreationMeta::MULTI_OUTPUT_NODE : CreationMeta::DEFAULT;
    if (state.get_inference_mode())
      creation = CreationMeta::INFERENCE_MODE;
    else if (!state.get_grad_mode())
      creation = CreationMeta::NO_GRAD_MODE;

    const bool history = needs_autograd(self);
    R made = history ? Operator::redispatch(
                           to_generated_kernel(keys).remove(c10::DispatchKey::ADInplaceOrView),
                           self, rest...)
                     : below_autograd(keys & c10::after_ADInplaceOrView_keyset, self, rest...);
    const auto view = [&](const at::Tensor& one) {
      return history ? as_view_with_history(self, one, creation, redo(self))
                     : as_view_of(self, one, creation, redo(self));
    };
    if constexpr (kSeveral)
      for (at::Tensor& one : made) one = view(one);
    else
      made = view(made);
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
      return std::make_unique<Redo<Operator>>(
          is_known_by_geometry(self) ? std::optional(at::TensorGeometry(self)) : std::nullopt);
    else
      return nullptr;
  }
};

// A view that PyTorch redoes on every device, as it is no lazy tensor.
template <class Operator, class Signature = typename Operator::schema>
struct AutogradRedoneView;

template <class Operator, class R, class... Rest>
struct AutogradRedoneView<Operator, R(const at::Tensor&, Rest...)> {
  static R kernel(c10::DispatchKeySet keys, const at::Tensor& self, Rest... rest) {
    return Operator::redispatch(to_generated_kernel(keys),
                                self.device().is_lazy() ? redoable(self) : self, rest...);
  }
};

// Registers Kernel<Operator>::kernel for each operator.
template <template <class...> class Kernel, class... Operators>
void register_kernels(torch::Library& library) {
  const auto add = [&]<class Operator>(Operator) {
    const std::string overload = Operator::overload_name;
    const std::string name = Operator::name + (overload.empty() ? "" : "." + overload);
    library.impl(name.c_str(), &Kernel<Operator>::kernel);
  };
  (add(Operators{}), ...);
}

}  // namespace

void register_view_autograd(torch::Library& library) {
  register_kernels<
      AutogradView, at::_ops::_conj, at::_ops::_neg_view, at::_ops::_reshape_alias, at::_ops::alias,
      at::_ops::as_strided, at::_ops::diagonal, at::_ops::expand, at::_ops::permute,
      at::_ops::select_int, at::_ops::slice_Tensor, at::_ops::split_Tensor,
      at::_ops::split_with_sizes, at::_ops::squeeze, at::_ops::squeeze_dim, at::_ops::squeeze_dims,
      at::_ops::t, at::_ops::transpose_int, at::_ops::unbind_int, at::_ops::unfold,
      at::_ops::unsqueeze, at::_ops::view, at::_ops::view_as_complex, at::_ops::view_as_real>(
      library);
  register_kernels<AutogradRedoneView, at::_ops::_nested_view_from_buffer>(library);
  // The view, or a tensor that stands for its kind, is nested already; maybe the CPU's.
  register_kernels<AutogradRedoneView, at::_ops::_nested_view_from_jagged>(
      immortal_library(torch::Library::IMPL, "aten", c10::DispatchKey::AutogradNestedTensor));
}

}  // namespace torch_lazy
