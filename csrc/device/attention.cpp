// scaled_dot_product_attention, by the kernels that the device takes which lazy tensors live on:
// the CPU's flash attention, CUDA's flash, memory-efficient and cuDNN's, another device's
// "overrideable" one; any other is composed of products and a softmax. What is done to masks and
// features before is that of ATen/native/transformers/attention.cpp.
//
// Gradients are those of PyTorch's own operators, which are called here with lazy tensors. CUDA's
// are recorded under another name (ops/attention_operator.h), but where they drop out: then they
// run at the call, as all that draws from a generator of CUDA's, and leave their seed, of which the
// memory-efficient kernel's lies on the host, to their gradient.
#include <ATen/SDPBackend.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_fused_sdp_choice_ops.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_fused_attention_overrideable.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/pad.h>
#include <ATen/ops/scaled_dot_product_attention_native.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <torch/version.h>

#include <cmath>
#include <limits>

#include "base/immortal_library.h"
#include "device/boxed.h"
#include "device/call.h"
#include "device/register.h"
#include "ops/attention_operator.h"
#include "ops/thread_state.h"

namespace torch_lazy {
namespace {

using at::SDPBackend;
using at::Tensor;
using Mask = std::optional<Tensor>;

bool is_given(const Mask& mask) {
  return mask && mask->defined();
}

// A tensor of the execution device with the metadata of a lazy one and no memory: for code that
// decides by metadata.
Tensor twin(const Tensor& tensor) {
  const ExecutionDevice& device = execution_device();
  c10::Storage nothing(c10::Storage::use_byte_size_t{}, 0,
                       c10::DataPtr(nullptr, device.device(tensor.device().index())), nullptr,
                       false);
  Tensor twin = at::detail::make_tensor<c10::TensorImpl>(
      std::move(nothing), c10::DispatchKeySet(device.key), tensor.dtype());
  twin.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(),
                                                    tensor.storage_offset());
  if (tensor.requires_grad()) twin.set_requires_grad(true);
  return twin;
}

// Which kernel of attention the device takes. A device that registers no choice composes it; what
// it does with operators that it has no kernel for is no choice.
SDPBackend attention_choice(const Tensor& query, const Tensor& key, const Tensor& value,
                            const Mask& mask, double dropout_p, bool is_causal,
                            std::optional<double> scale, bool enable_gqa) {
  static const auto choice = c10::Dispatcher::singleton().findSchemaOrThrow(
      at::_ops::_fused_sdp_choice::name, at::_ops::_fused_sdp_choice::overload_name);
  if (!choice.hasKernelForDispatchKey(execution_device().key)) return SDPBackend::math;
  Mask mask_twin;
  if (is_given(mask)) mask_twin = twin(*mask);
  return SDPBackend(at::_ops::_fused_sdp_choice::redispatch(inner_keys(), twin(query), twin(key),
                                                            twin(value), mask_twin, dropout_p,
                                                            is_causal, scale, enable_gqa));
}

// A boolean mask as the numbers that are added: 0 where it is true, `masked` where it is false.
Mask additive_mask(const Mask& mask, c10::ScalarType dtype,
                   double masked = -std::numeric_limits<double>::infinity()) {
  if (!is_given(mask) || mask->scalar_type() != c10::ScalarType::Bool) return mask;
  return at::zeros_like(*mask, dtype).masked_fill_(mask->logical_not(), masked);
}

Tensor padded(const Tensor& tensor, int64_t alignment) {
  const int64_t beyond = tensor.size(-1) % alignment;
  return beyond == 0 ? tensor : at::pad(tensor, {0, alignment - beyond});
}

// What the memory-efficient kernels ask of a bias: all four dimensions, and strides that are
// multiples of 8 elements.
Mask aligned_bias(const Mask& bias, const Tensor& query, const Tensor& key) {
  constexpr int64_t kAlignment = 8;
  if (!is_given(bias)) return bias;
  bool aligned = bias->stride(-1) == 1;
  for (int64_t i = 0; i + 1 < bias->dim(); ++i) aligned &= bias->stride(i) % kAlignment == 0;
  Tensor laid_out = *bias;
  if (!aligned) {
    const int64_t length = bias->size(-1);
    laid_out = at::pad(*bias, {0, kAlignment - length % kAlignment}).slice(-1, 0, length);
  }
  return laid_out.expand({query.size(0), query.size(1), query.size(2), key.size(2)});
}

Tensor cuda_attention(SDPBackend choice, const Tensor& query, const Tensor& key,
                      const Tensor& value, const Mask& mask, double dropout_p, bool is_causal,
                      std::optional<double> scale) {
  const bool keeps_logsumexp =
      c10::GradMode::is_enabled() &&
      (query.requires_grad() || key.requires_grad() || value.requires_grad());
  const c10::ScalarType dtype = query.scalar_type();
  if (choice == SDPBackend::cudnn_attention) {
    constexpr double kMasked = -65504;  // cuDNN does not take infinity there
    return std::get<0>(at::_scaled_dot_product_cudnn_attention(
        query, key, value, additive_mask(mask, dtype, kMasked), keeps_logsumexp, dropout_p,
        is_causal, /*return_debug_mask=*/false, scale));
  }
  if (choice == SDPBackend::efficient_attention)
    return std::get<0>(at::_scaled_dot_product_efficient_attention(
        query, key, value, aligned_bias(additive_mask(mask, dtype), query, key), keeps_logsumexp,
        dropout_p, is_causal, scale));
  constexpr int64_t kFeatures = 8;  // of which flash attention takes multiples
  const int64_t features = query.size(-1);
  const Tensor output = std::get<0>(at::_scaled_dot_product_flash_attention(
      padded(query, kFeatures), padded(key, kFeatures), padded(value, kFeatures), dropout_p,
      is_causal, /*return_debug_mask=*/false, scale.value_or(1 / std::sqrt(double(features)))));
  return output.size(-1) == features ? output : output.slice(-1, 0, features);
}

// From 2.14 on PyTorch takes three dimensions for a batch of one, which its kernels have to see.
constexpr bool kTakesThreeDimensions = TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 14;

// The mask with all four dimensions: batches, and heads, share one that has none for them.
Mask of_all_dimensions(Mask mask) {
  while (is_given(mask) && mask->dim() < 4) mask = mask->unsqueeze(0);
  return mask;
}

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Mask& mask, double dropout_p, bool is_causal,
                                    std::optional<double> scale, bool enable_gqa) {
  if (kTakesThreeDimensions && query.dim() == 3 && key.dim() == 3 && value.dim() == 3)
    return scaled_dot_product_attention(query.unsqueeze(0), key.unsqueeze(0), value.unsqueeze(0),
                                        of_all_dimensions(mask), dropout_p, is_causal, scale,
                                        enable_gqa)
        .squeeze(0);
  const bool all_lazy =
      is_lazy(query) && is_lazy(key) && is_lazy(value) && (!is_given(mask) || is_lazy(*mask));
  // Whatever is wrong with the arguments is told by PyTorch's own function, which then takes the
  // math path: no fused kernel is registered for device lazy. Nor is one asked where there is
  // nothing to attend to.
  const bool mask_fits = !is_given(mask) || mask->scalar_type() == c10::ScalarType::Bool ||
                         mask->scalar_type() == c10::ScalarType::Float ||
                         mask->dtype() == query.dtype();
  // The CPU's kernel alone takes both.
  const bool takes_both = !(is_causal && is_given(mask)) || execution_device().is_cpu();
  const bool has_elements = query.numel() > 0 && key.numel() > 0 && value.numel() > 0;
  const bool may_fuse = all_lazy && has_elements && query.dim() == 4 && key.dim() == 4 &&
                        value.dim() == 4 && takes_both && query.dtype() == key.dtype() &&
                        query.dtype() == value.dtype() && mask_fits;
  const bool on_cuda = execution_device().key == c10::DispatchKey::CUDA;
  const SDPBackend choice =
      may_fuse ? attention_choice(query, key, value, mask, dropout_p, is_causal, scale, enable_gqa)
               : SDPBackend::math;
  if (choice == SDPBackend::flash_attention && execution_device().is_cpu())
    return std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(
        query, key, value, dropout_p, is_causal, additive_mask(mask, query.scalar_type()), scale));
  if (on_cuda &&
      (choice == SDPBackend::flash_attention || choice == SDPBackend::efficient_attention ||
       choice == SDPBackend::cudnn_attention))
    return cuda_attention(choice, query, key, value, mask, dropout_p, is_causal, scale);
  if (choice == SDPBackend::overrideable)
    return std::get<0>(at::_scaled_dot_product_fused_attention_overrideable(
        query, key, value, additive_mask(mask, query.scalar_type()), dropout_p, is_causal,
        /*return_debug_mask=*/false, scale));
  return at::native::scaled_dot_product_attention(query, key, value, mask, dropout_p, is_causal,
                                                  scale, enable_gqa);
}

// ---------------------------------------------------------------- CUDA's operators

c10::IValue argument(const c10::FunctionSchema& schema, const torch::jit::Stack& stack,
                     const char* name, const c10::IValue& otherwise = {}) {
  const std::optional<int> index = schema.argumentIndexWithName(name);
  const size_t first = stack.size() - schema.arguments().size();
  return index ? stack[first + size_t(*index)] : otherwise;
}

// The rest of what the operators return: lengths of sequences where batches are packed, of which
// there are none here, and the state of random numbers, which nothing reads without dropout.
void attend(AttentionKind kind, const c10::OperatorHandle& op, c10::DispatchKeySet keys,
            torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const auto given = [&](const char* name, const c10::IValue& otherwise = {}) {
    return argument(schema, *stack, name, otherwise);
  };
  const Tensor query = given("query").toTensor(), key = given("key").toTensor();
  const bool on_cuda = execution_device().key == c10::DispatchKey::CUDA;
  if (given("dropout_p").toDouble() != 0 || !is_lazy(query) || !on_cuda)
    return boxed_kernel(op, keys, stack);
  auto [output, logsumexp] = fused_attention(
      kind, query, key, given("value").toTensor(), given("attn_bias").toOptional<Tensor>(),
      given("compute_log_sumexp", true).toBool(), given("is_causal").toBool(),
      given("scale").toOptional<double>());
  const Tensor none;
  const Tensor state = at::empty({2}, query.options().dtype(c10::kLong));
  torch::jit::drop(stack, schema.arguments().size());
  if (kind == AttentionKind::kEfficient)
    return torch::jit::push(stack, std::move(output), std::move(logsumexp), state, state);
  torch::jit::push(stack, std::move(output), std::move(logsumexp), none, none, query.size(2),
                   key.size(2), state, state, none);
}

template <AttentionKind kind>
void boxed_attention(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                     torch::jit::Stack* stack) {
  attend(kind, op, keys, stack);
}

template <AttentionKind kind>
torch::CppFunction kernel_of() {
  return torch::CppFunction::makeFromBoxedFunction<&boxed_attention<kind>>();
}

}  // namespace

void register_attention() {
  for (const auto key : {c10::DispatchKey::Lazy, c10::DispatchKey::AutogradLazy})
    immortal_library(torch::Library::IMPL, "aten", key)
        .impl("scaled_dot_product_attention", scaled_dot_product_attention);
  torch::Library& aten = immortal_library(torch::Library::IMPL, "aten", c10::DispatchKey::Lazy);
  aten.impl("_scaled_dot_product_flash_attention", kernel_of<AttentionKind::kFlash>());
  aten.impl("_scaled_dot_product_efficient_attention", kernel_of<AttentionKind::kEfficient>());
  aten.impl("_scaled_dot_product_cudnn_attention", kernel_of<AttentionKind::kCudnn>());
}

}  // namespace torch_lazy
