// CUDA's fused attention without dropout, under a name that stands on tapes and in graphs.
// PyTorch's own operators return the lengths of sequences too, which are numbers, and the state of
// the random numbers that dropout takes: no window can have made those.
//
//   torch_lazy::fused_attention(kind, ...): output and logsumexp of the aten operator of that kind
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <tuple>

namespace torch_lazy {

// Values of at::SDPBackend, which are the same numbers in every version.
enum class AttentionKind : int64_t { kFlash = 1, kEfficient = 2, kCudnn = 3 };

// Defines the operator and its CUDA kernel. Once a process, before it is called.
void register_attention_operator();

// `bias` is added to the products, of kFlash it is none. Query, key and value have four dimensions:
// batch, heads, sequence, features.
std::tuple<at::Tensor, at::Tensor> fused_attention(AttentionKind kind, const at::Tensor& query,
                                                   const at::Tensor& key, const at::Tensor& value,
                                                   const std::optional<at::Tensor>& bias,
                                                   bool compute_logsumexp, bool is_causal,
                                                   std::optional<double> scale);

}  // namespace torch_lazy
