// The operators that torch.nn.SyncBatchNorm puts between its collectives, which PyTorch has for
// accelerators only. Composed of operators that are recorded, so a window fuses them.
//
// Statistics are float where inputs are half or bfloat16, as on CUDA.
#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/var_mean.h>

#include "device/register.h"

namespace torch_lazy {
namespace {

using at::Tensor;

c10::ScalarType statistics_type(const Tensor& input) {
  return at::toOpMathType(input.scalar_type());
}

// All dimensions but that of the channels.
std::vector<int64_t> reduced(const Tensor& input) {
  std::vector<int64_t> dims;
  for (int64_t dim = 0; dim < input.dim(); ++dim)
    if (dim != 1) dims.push_back(dim);
  return dims;
}

// A value for each channel, broadcast over the input.
Tensor over(const Tensor& channels, const Tensor& input) {
  std::vector<int64_t> sizes(size_t(input.dim()), 1);
  sizes[1] = channels.numel();
  return channels.to(statistics_type(input)).view(sizes);
}

Tensor times_weight(const Tensor& value, const std::optional<Tensor>& weight, const Tensor& input) {
  return weight && weight->defined() ? value * over(*weight, input) : value;
}

std::tuple<Tensor, Tensor> stats(const Tensor& input, double eps) {
  const auto [variance, mean] =
      at::var_mean(input.to(statistics_type(input)), at::OptionalIntArrayRef(reduced(input)),
                   /*correction=*/std::optional<c10::Scalar>(0));
  return {mean, at::rsqrt(variance + eps)};
}

void update(const std::optional<Tensor>& running, const Tensor& now, double momentum) {
  if (running && running->defined()) running->mul_(1 - momentum).add_(now, momentum);
}

// The statistics of all ranks' inputs from each rank's, one row a rank.
std::tuple<Tensor, Tensor> gather_stats_with_counts(const Tensor&, const Tensor& means,
                                                    const Tensor& invstds,
                                                    const std::optional<Tensor>& running_mean,
                                                    const std::optional<Tensor>& running_variance,
                                                    double momentum, double eps,
                                                    const Tensor& counts) {
  const Tensor weights = counts.to(means.scalar_type()).view({-1, 1});
  const Tensor total = weights.sum();
  const Tensor mean = (means * weights).sum(0) / total;
  const Tensor variances = invstds.square().reciprocal() - eps;
  const Tensor variance = ((variances + (means - mean).square()) * weights).sum(0) / total;
  update(running_mean, mean, momentum);
  update(running_variance, variance * (total / (total - 1)), momentum);
  return {mean, at::rsqrt(variance + eps)};
}

Tensor normalize(const Tensor& input, const std::optional<Tensor>& weight,
                 const std::optional<Tensor>& bias, const Tensor& mean, const Tensor& invstd,
                 double) {
  Tensor result = times_weight((input - over(mean, input)) * over(invstd, input), weight, input);
  if (bias && bias->defined()) result = result + over(*bias, input);
  return result.to(input.scalar_type());
}

std::tuple<Tensor, Tensor, Tensor, Tensor> backward_reduce(
    const Tensor& gradient, const Tensor& input, const Tensor& mean, const Tensor& invstd,
    const std::optional<Tensor>& weight, bool input_needs, bool weight_needs, bool bias_needs) {
  const std::vector<int64_t> dims = reduced(input);
  const Tensor dy = gradient.to(statistics_type(input));
  const Tensor sum_dy = dy.sum(dims);
  const Tensor sum_dy_xmu = (dy * (input - over(mean, input))).sum(dims);
  const c10::ScalarType type =
      weight && weight->defined() ? weight->scalar_type() : input.scalar_type();
  return {input_needs ? sum_dy : Tensor(), input_needs ? sum_dy_xmu : Tensor(),
          weight_needs ? (sum_dy_xmu * invstd).to(type) : Tensor(),
          bias_needs ? sum_dy.to(type, /*non_blocking=*/false, /*copy=*/true) : Tensor()};
}

Tensor backward_normalize(const Tensor& gradient, const Tensor& input, const Tensor& mean,
                          const Tensor& invstd, const std::optional<Tensor>& weight,
                          const Tensor& sum_dy, const Tensor& sum_dy_xmu, const Tensor& count) {
  const Tensor total = count.sum().to(statistics_type(input));
  const Tensor slope = invstd.square() * sum_dy_xmu / total;
  const Tensor centered =
      gradient - over(sum_dy / total, input) - (input - over(mean, input)) * over(slope, input);
  return times_weight(centered * over(invstd, input), weight, input).to(input.scalar_type());
}

}  // namespace

void register_sync_batch_norm(torch::Library& aten) {
  aten.impl("batch_norm_stats", TORCH_FN(stats));
  aten.impl("batch_norm_gather_stats_with_counts", TORCH_FN(gather_stats_with_counts));
  aten.impl("batch_norm_elemt", TORCH_FN(normalize));
  aten.impl("batch_norm_backward_reduce", TORCH_FN(backward_reduce));
  aten.impl("batch_norm_backward_elemt", TORCH_FN(backward_normalize));
}

}  // namespace torch_lazy
