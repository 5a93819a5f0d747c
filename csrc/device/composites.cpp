// Composite operators that ask for the device and would decompose differently on `lazy` than on the
// CPU: other kernels, other random numbers, other rounding. Where lazy tensors live on the CPU they
// take its way here; on another device PyTorch's, whose attention is then composed of products and
// a softmax.
//
// Registered for AutogradLazy too: a composite operator with a Lazy kernel alone would lose its
// gradient. Under vmap and torch.func they are decomposed above the device, as everywhere.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_fused_sdp_choice_ops.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/dropout_native.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/group_norm_native.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/native_group_norm.h>
#include <ATen/ops/scaled_dot_product_attention_native.h>
#include <ATen/ops/zeros_like.h>

#include <limits>

#include "base/immortal_library.h"
#include "device/call.h"
#include "device/register.h"
#include "ops/thread_state.h"

namespace torch_lazy {
namespace {

// A CPU tensor with the metadata of a lazy one and no memory: for CPU code that decides by
// metadata.
at::Tensor cpu_twin(const at::Tensor& tensor) {
  c10::Storage nothing(c10::Storage::use_byte_size_t{}, 0, c10::DataPtr(nullptr, c10::kCPU),
                       nullptr, false);
  at::Tensor twin = at::detail::make_tensor<c10::TensorImpl>(
      std::move(nothing), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  twin.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(),
                                                    tensor.storage_offset());
  if (tensor.requires_grad()) twin.set_requires_grad(true);
  return twin;
}

// A lazy tensor whose operators choose as the CPU's do.
bool lives_on_cpu(const at::Tensor& tensor) {
  return lazy_impl(tensor) != nullptr && execution_device().is_cpu();
}

int64_t attention_choice(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                         const std::optional<at::Tensor>& mask, double dropout_p, bool is_causal,
                         std::optional<double> scale, bool enable_gqa) {
  std::optional<at::Tensor> mask_twin;
  if (mask && mask->defined()) mask_twin = cpu_twin(*mask);
  return at::_ops::_fused_sdp_choice::redispatch(inner_keys(), cpu_twin(query), cpu_twin(key),
                                                 cpu_twin(value), mask_twin, dropout_p, is_causal,
                                                 scale, enable_gqa);
}

// A boolean mask as the numbers that are added: 0 where it is true, -inf where it is false.
std::optional<at::Tensor> additive_mask(const std::optional<at::Tensor>& mask,
                                        c10::ScalarType dtype) {
  if (!mask || !mask->defined() || mask->scalar_type() != c10::ScalarType::Bool) return mask;
  return at::zeros_like(*mask, dtype)
      .masked_fill_(mask->logical_not(), -std::numeric_limits<double>::infinity());
}

at::Tensor scaled_dot_product_attention(const at::Tensor& query, const at::Tensor& key,
                                        const at::Tensor& value,
                                        const std::optional<at::Tensor>& mask, double dropout_p,
                                        bool is_causal, std::optional<double> scale,
                                        bool enable_gqa) {
  constexpr int64_t kFlash = 1;  // sdp::SDPBackend::flash_attention
  const bool on_device = lives_on_cpu(query) && lives_on_cpu(key) && lives_on_cpu(value) &&
                         (!mask || !mask->defined() || lives_on_cpu(*mask));
  // Whatever is wrong with the arguments is told by PyTorch's own function, which then takes the
  // math path: no fused kernel is registered for this device.
  if (!on_device || query.dim() != 4 || key.dim() != 4 || value.dim() != 4 ||
      (is_causal && mask && mask->defined()) || query.dtype() != key.dtype() ||
      query.dtype() != value.dtype() ||
      attention_choice(query, key, value, mask, dropout_p, is_causal, scale, enable_gqa) != kFlash)
    return at::native::scaled_dot_product_attention(query, key, value, mask, dropout_p, is_causal,
                                                    scale, enable_gqa);
  return std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(
      query, key, value, dropout_p, is_causal, additive_mask(mask, query.scalar_type()), scale));
}

// PyTorch fuses dropout on device types it lists, Lazy among them; the CPU multiplies by noise.
at::Tensor dropout(const at::Tensor& input, double p, bool train) {
  if (!train || !(p > 0 && p < 1) || input.numel() == 0 || !execution_device().is_cpu())
    return at::native::dropout(input, p, train);
  at::Tensor noise = at::empty_like(input);
  noise.bernoulli_(1 - p);
  noise.div_(1 - p);
  return input.mul(noise);
}

// PyTorch keeps channels_last of the CPU's tensors only.
at::Tensor group_norm(const at::Tensor& input, int64_t groups,
                      const std::optional<at::Tensor>& weight,
                      const std::optional<at::Tensor>& bias, double eps, bool cudnn_enabled) {
  const at::MemoryFormat format = input.suggest_memory_format();
  if (!lives_on_cpu(input) || format == at::MemoryFormat::Contiguous || input.size(1) % groups != 0)
    return at::native::group_norm(input, groups, weight, bias, eps, cudnn_enabled);
  const auto contiguous = [](const std::optional<at::Tensor>& tensor) {
    return tensor && tensor->defined() ? std::optional(tensor->contiguous()) : std::nullopt;
  };
  const auto gamma = contiguous(weight), beta = contiguous(bias);
  return std::get<0>(
      at::native_group_norm(input.contiguous(format), gamma, beta, input.size(0), input.size(1),
                            input.numel() / (input.size(0) * input.size(1)), groups, eps));
}

}  // namespace

void register_composites() {
  for (const auto key : {c10::DispatchKey::Lazy, c10::DispatchKey::AutogradLazy}) {
    torch::Library& aten = immortal_library(torch::Library::IMPL, "aten", key);
    aten.impl("scaled_dot_product_attention", scaled_dot_product_attention);
    aten.impl("dropout", dropout);
    aten.impl("group_norm", group_norm);
  }
}

}  // namespace torch_lazy
