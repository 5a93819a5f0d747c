// Composite operators that ask for the device and would decompose differently on `lazy` than on the
// device that it lives on: other kernels, other random numbers, other rounding. Dropout takes the
// CPU's way where lazy tensors live there. One-hot codes look at the classes at the call, on the
// CPU, for what is wrong with them: where the number of classes is given that is left to whoever
// runs the window. Quantiles look at the levels, on the CPU alone. A tensor that says where to
// split is read on the CPU, as PyTorch reads it. TorchScript's tracer has no kernel for
// `convolution`: it records what PyTorch's composite calls. Pooling along one dimension has a
// kernel of the CPU's that finds no indices, where nothing asks for a gradient. A layer of an
// encoder is taken apart as each device's kernel does, so that autocast sees the parts and windows
// fuse them.
//
// Registered for AutogradLazy too: a composite operator with a Lazy kernel alone would lose its
// gradient. Under vmap and torch.func they are decomposed above the device, as everywhere.
#include <ATen/TensorOperators.h>
#include <ATen/TensorSubclassLikeUtils.h>
#include <ATen/TracerMode.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_transformer_encoder_layer_fwd_native.h>
#include <ATen/ops/convolution_native.h>
#include <ATen/ops/convolution_ops.h>
#include <ATen/ops/dropout_native.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/max_pool1d_native.h>
#include <ATen/ops/max_pool1d_ops.h>
#include <ATen/ops/nanquantile_native.h>
#include <ATen/ops/one_hot_native.h>
#include <ATen/ops/quantile_native.h>
#include <ATen/ops/tensor_split_native.h>

#include <vector>

#include "base/immortal_library.h"
#include "device/call.h"
#include "device/random_operators.h"
#include "device/register.h"
#include "device/unboxed.h"
#include "ops/one_hot_operator.h"
#include "ops/thread_state.h"

namespace torch_lazy {
namespace {

// A lazy tensor whose operators choose as the CPU's do.
bool lives_on_cpu(const at::Tensor& tensor) {
  return is_lazy(tensor) && execution_device().is_cpu();
}

// PyTorch fuses dropout on device types it lists, Lazy among them; the CPU multiplies by noise. So
// does any device that draws the noise in its kernels and has none that fuses dropout.
at::Tensor dropout(const at::Tensor& input, double p, bool train) {
  static const auto fused =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::native_dropout", "");
  const bool by_noise =
      execution_device().is_cpu() ||
      (draws_bernoulli_by_key() && !fused.hasKernelForDispatchKey(execution_device().key));
  if (!train || !(p > 0 && p < 1) || input.numel() == 0 || !by_noise)
    return at::native::dropout(input, p, train);
  at::Tensor noise = at::empty_like(input);
  noise.bernoulli_(1 - p);
  noise.div_(1 - p);
  return input.mul(noise);
}

at::Tensor one_hot(const at::Tensor& self, int64_t classes) {
  if (!lives_on_cpu(self) || self.scalar_type() != at::kLong || self.numel() == 0)
    return at::native::one_hot(self, classes);
  if (classes <= 0) {
    const at::Tensor least = self.min(), most = self.max();
    TORCH_CHECK(least.item<int64_t>() >= 0, "Class values must be non-negative.");
    const int64_t last = most.item<int64_t>();
    if (classes == -1) classes = last + 1;
    TORCH_CHECK(classes > last, "Class values must be smaller than num_classes.");
  }
  static const auto of_classes = c10::Dispatcher::singleton()
                                     .findSchemaOrThrow(kOneHotOfClasses, "")
                                     .typed<at::Tensor(const at::Tensor&, int64_t)>();
  return of_classes.call(self, classes);
}

// As PyTorch does of plain tensors on the CPU alone.
void check_levels(const at::Tensor& self, const at::Tensor& q) {
  const at::ScalarType dtype = self.scalar_type();
  if (!lives_on_cpu(self) || !lazy_impl(q) || at::isTensorSubclassLike(q) || q.dim() > 1 ||
      self.numel() == 0 || q.scalar_type() != dtype ||
      (dtype != at::kFloat && dtype != at::kDouble))
    return;
  TORCH_CHECK(q.ge(0).logical_and_(q.le(1)).all().item<bool>(),
              "quantile() q values must be in the range [0, 1]");
}

using Quantile = at::Tensor (*)(const at::Tensor&, const at::Tensor&, std::optional<int64_t>, bool,
                                c10::string_view);
using QuantileOut = at::Tensor& (*)(const at::Tensor&, const at::Tensor&, std::optional<int64_t>,
                                    bool, c10::string_view, at::Tensor&);

template <Quantile composite>
at::Tensor quantile(const at::Tensor& self, const at::Tensor& q, std::optional<int64_t> dim,
                    bool keepdim, c10::string_view interpolation) {
  check_levels(self, q);
  return composite(self, q, dim, keepdim, interpolation);
}

template <QuantileOut composite>
at::Tensor& quantile_out(const at::Tensor& self, const at::Tensor& q, std::optional<int64_t> dim,
                         bool keepdim, c10::string_view interpolation, at::Tensor& out) {
  check_levels(self, q);
  return composite(self, q, dim, keepdim, interpolation, out);
}

std::vector<at::Tensor> tensor_split(const at::Tensor& self, const at::Tensor& places,
                                     int64_t dim) {
  return at::native::tensor_split(self, is_lazy(places) ? places.cpu() : places, dim);
}

at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight,
                       const std::optional<at::Tensor>& bias, c10::SymIntArrayRef stride,
                       c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed,
                       c10::SymIntArrayRef output_padding, c10::SymInt groups) {
  if (at::tracer::impl::is_dispatch_enabled())
    return at::native::convolution(
        input, weight, bias, C10_AS_INTARRAYREF_SLOW(stride), C10_AS_INTARRAYREF_SLOW(padding),
        C10_AS_INTARRAYREF_SLOW(dilation), transposed, C10_AS_INTARRAYREF_SLOW(output_padding),
        groups.guard_int(__FILE__, __LINE__));
  return Unboxed<at::_ops::convolution>::kernel(input, weight, bias, stride, padding, dilation,
                                                transposed, output_padding, std::move(groups));
}

at::Tensor max_pool1d(const at::Tensor& self, at::IntArrayRef kernel, at::IntArrayRef stride,
                      at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode) {
  const bool has_gradient =
      (self.requires_grad() && at::GradMode::is_enabled()) || self._fw_grad(0).defined();
  // A mode of Python's and the tracer are shown PyTorch's operators.
  const bool is_watched = at::isTensorSubclassLike(self) || at::tracer::impl::is_dispatch_enabled();
  if (!lives_on_cpu(self) || has_gradient || is_watched)
    return at::native::max_pool1d(self, kernel, stride, padding, dilation, ceil_mode);
  at::AutoDispatchBelowADInplaceOrView below;
  return Unboxed<at::_ops::max_pool1d>::kernel(self, kernel, stride, padding, dilation, ceil_mode);
}

}  // namespace

void register_composites() {
  torch::Library& below = immortal_library(torch::Library::IMPL, "aten", c10::DispatchKey::Lazy);
  below.impl("convolution", convolution);
  below.impl("_transformer_encoder_layer_fwd", at::native::transformer_encoder_layer_forward);
  constexpr Quantile of_all = at::native::quantile, of_numbers = at::native::nanquantile;
  constexpr QuantileOut of_all_out = at::native::quantile_out,
                        of_numbers_out = at::native::nanquantile_out;
  for (const auto key : {c10::DispatchKey::Lazy, c10::DispatchKey::AutogradLazy}) {
    torch::Library& aten = immortal_library(torch::Library::IMPL, "aten", key);
    aten.impl("dropout", dropout);
    register_group_norm(aten);
    aten.impl("max_pool1d", max_pool1d);
    aten.impl("nanquantile", quantile<of_numbers>);
    aten.impl("nanquantile.out", quantile_out<of_numbers_out>);
    aten.impl("one_hot", one_hot);
    aten.impl("quantile", quantile<of_all>);
    aten.impl("quantile.out", quantile_out<of_all_out>);
    aten.impl("tensor_split.tensor_indices_or_sections", tensor_split);
  }
}

}  // namespace torch_lazy
