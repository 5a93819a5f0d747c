// group_norm of images in channels_last where lazy tensors live on the CPU: the result and the
// gradient are in channels_last, too. PyTorch keeps the format of the CPU's tensors only.
#include <ATen/core/Tensor.h>
#include <ATen/ops/alias.h>
#include <ATen/ops/group_norm_native.h>
#include <ATen/ops/native_group_norm.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/custom_function.h>

#include "backend/execution_device.h"
#include "device/register.h"

namespace torch_lazy {
namespace {

using torch::autograd::variable_list;

// The identity, whose gradient is laid out in the format of the input: PyTorch's formula for
// native_group_norm lays it out contiguously on every device but the CPU.
struct KeepFormatOfGradient : torch::autograd::Function<KeepFormatOfGradient> {
  static constexpr bool is_traceable = true;  // for compiled autograd

  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& input) {
    context->set_materialize_grads(false);
    context->saved_data["format"] = int64_t(input.suggest_memory_format());
    return at::alias(input);  // with its strides, which view_as changes where there is one image
  }
  static variable_list backward(torch::autograd::AutogradContext* context,
                                const variable_list& gradients) {
    const auto format = at::MemoryFormat(context->saved_data["format"].toInt());
    const at::Tensor& gradient = gradients[0];
    return {gradient.defined() ? gradient.contiguous(format) : gradient};
  }
};

// PyTorch refuses functions written in C++ under torch.func, whose transforms include this key, and
// in forward-mode differentiation; the gradient's layout is given up there.
bool takes_functions(const at::Tensor& input) {
  return c10::GradMode::is_enabled() && input.requires_grad() &&
         !c10::impl::tls_is_dispatch_key_included(
             c10::DispatchKey::FuncTorchDynamicLayerFrontMode) &&
         !input._fw_grad(/*level=*/0).defined();
}

at::Tensor group_norm(const at::Tensor& input, int64_t groups,
                      const std::optional<at::Tensor>& weight,
                      const std::optional<at::Tensor>& bias, double eps, bool cudnn_enabled) {
  const at::MemoryFormat format = input.suggest_memory_format();
  if (!input.device().is_lazy() || !execution_device().is_cpu() ||
      format == at::MemoryFormat::Contiguous || groups <= 0 || input.size(1) % groups != 0)
    return at::native::group_norm(input, groups, weight, bias, eps, cudnn_enabled);
  const auto contiguous = [](const std::optional<at::Tensor>& tensor) {
    return tensor && tensor->defined() ? std::optional(tensor->contiguous()) : std::nullopt;
  };
  const auto gamma = contiguous(weight), beta = contiguous(bias);
  at::Tensor x = input.contiguous(format);
  if (takes_functions(x)) x = KeepFormatOfGradient::apply(x);
  return std::get<0>(at::native_group_norm(x, gamma, beta, input.size(0), input.size(1),
                                           input.numel() / (input.size(0) * input.size(1)), groups,
                                           eps));
}

}  // namespace

void register_group_norm(torch::Library& library) {
  library.impl("group_norm", group_norm);
}

}  // namespace torch_lazy
