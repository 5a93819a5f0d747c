#include "ops/attention_operator.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <torch/library.h>

#include "base/immortal_library.h"

namespace torch_lazy {
namespace {

using at::Tensor;

// The first two results of an aten operator.
template <class Results>
std::tuple<Tensor, Tensor> first_two(Results results) {
  return {std::move(std::get<0>(results)), std::move(std::get<1>(results))};
}

std::tuple<Tensor, Tensor> attention_of_kind(int64_t kind, const Tensor& query, const Tensor& key,
                                             const Tensor& value, const std::optional<Tensor>& bias,
                                             bool compute_logsumexp, bool is_causal,
                                             std::optional<double> scale) {
  constexpr double kNoDropout = 0;
  switch (AttentionKind(kind)) {
    case AttentionKind::kFlash:
      return first_two(at::_scaled_dot_product_flash_attention(
          query, key, value, kNoDropout, is_causal, /*return_debug_mask=*/false, scale));
    case AttentionKind::kEfficient:
      return first_two(at::_scaled_dot_product_efficient_attention(
          query, key, value, bias, compute_logsumexp, kNoDropout, is_causal, scale));
    case AttentionKind::kCudnn:
      return first_two(at::_scaled_dot_product_cudnn_attention(
          query, key, value, bias, compute_logsumexp, kNoDropout, is_causal,
          /*return_debug_mask=*/false, scale));
  }
  TORCH_CHECK(false, "there is no fused attention of kind ", kind);
}

}  // namespace

void register_attention_operator() {
  immortal_library(torch::Library::FRAGMENT, "torch_lazy", std::nullopt)
      .def(
          "fused_attention(int kind, Tensor query, Tensor key, Tensor value, Tensor? bias, "
          "bool compute_logsumexp, bool is_causal, float? scale) -> (Tensor, Tensor)");
  immortal_library(torch::Library::IMPL, "torch_lazy", c10::DispatchKey::CUDA)
      .impl("fused_attention", attention_of_kind);
}

std::tuple<Tensor, Tensor> fused_attention(AttentionKind kind, const Tensor& query,
                                           const Tensor& key, const Tensor& value,
                                           const std::optional<Tensor>& bias,
                                           bool compute_logsumexp, bool is_causal,
                                           std::optional<double> scale) {
  static const auto attention = c10::Dispatcher::singleton()
                                    .findSchemaOrThrow("torch_lazy::fused_attention", "")
                                    .typed<decltype(attention_of_kind)>();
  return attention.call(int64_t(kind), query, key, value, bias, compute_logsumexp, is_causal,
                        scale);
}

}  // namespace torch_lazy
