// Operators that scripts call most, without boxing: pointwise, reductions, matmul, normalisation,
// optimizers.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_log_softmax_backward_data_ops.h>
#include <ATen/ops/_log_softmax_ops.h>
#include <ATen/ops/_softmax_backward_data_ops.h>
#include <ATen/ops/_softmax_ops.h>
#include <ATen/ops/abs_ops.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/addcdiv_ops.h>
#include <ATen/ops/addcmul_ops.h>
#include <ATen/ops/addmm_ops.h>
#include <ATen/ops/argmax_ops.h>
#include <ATen/ops/bitwise_and_ops.h>
#include <ATen/ops/bmm_ops.h>
#include <ATen/ops/cat_ops.h>
#include <ATen/ops/clamp_ops.h>
#include <ATen/ops/clone_ops.h>
#include <ATen/ops/convolution_backward_ops.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/embedding_dense_backward_ops.h>
#include <ATen/ops/embedding_ops.h>
#include <ATen/ops/eq_ops.h>
#include <ATen/ops/exp_ops.h>
#include <ATen/ops/fill_ops.h>
#include <ATen/ops/ge_ops.h>
#include <ATen/ops/gelu_backward_ops.h>
#include <ATen/ops/gelu_ops.h>
#include <ATen/ops/gt_ops.h>
#include <ATen/ops/le_ops.h>
#include <ATen/ops/lerp_ops.h>
#include <ATen/ops/log_ops.h>
#include <ATen/ops/lt_ops.h>
#include <ATen/ops/masked_fill_ops.h>
#include <ATen/ops/max_pool2d_with_indices_ops.h>
#include <ATen/ops/mean_ops.h>
#include <ATen/ops/mm_ops.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/native_batch_norm_backward_ops.h>
#include <ATen/ops/native_batch_norm_ops.h>
#include <ATen/ops/native_layer_norm_backward_ops.h>
#include <ATen/ops/native_layer_norm_ops.h>
#include <ATen/ops/neg_ops.h>
#include <ATen/ops/nll_loss_backward_ops.h>
#include <ATen/ops/nll_loss_forward_ops.h>
#include <ATen/ops/ones_like_ops.h>
#include <ATen/ops/pow_ops.h>
#include <ATen/ops/reciprocal_ops.h>
#include <ATen/ops/relu_ops.h>
#include <ATen/ops/rsqrt_ops.h>
#include <ATen/ops/rsub_ops.h>
#include <ATen/ops/select_backward_ops.h>
#include <ATen/ops/sigmoid_backward_ops.h>
#include <ATen/ops/sigmoid_ops.h>
#include <ATen/ops/silu_backward_ops.h>
#include <ATen/ops/silu_ops.h>
#include <ATen/ops/slice_backward_ops.h>
#include <ATen/ops/sqrt_ops.h>
#include <ATen/ops/sub_ops.h>
#include <ATen/ops/sum_ops.h>
#include <ATen/ops/tanh_backward_ops.h>
#include <ATen/ops/tanh_ops.h>
#include <ATen/ops/threshold_backward_ops.h>
#include <ATen/ops/where_ops.h>
#include <ATen/ops/zero_ops.h>
#include <ATen/ops/zeros_like_ops.h>

#include "device/past_autograd.h"
#include "device/register.h"

namespace torch_lazy {

void register_hot_operators(torch::Library& library, torch::Library& autograd) {
  register_past_autograd<
      at::_ops::add_Tensor, at::_ops::add__Tensor, at::_ops::sub_Tensor, at::_ops::sub__Tensor,
      at::_ops::mul_Tensor, at::_ops::mul__Tensor, at::_ops::div_Tensor, at::_ops::div__Tensor,
      at::_ops::add_Scalar, at::_ops::sub_Scalar, at::_ops::mul_Scalar, at::_ops::div_Scalar,
      at::_ops::rsub_Scalar, at::_ops::neg, at::_ops::exp, at::_ops::log, at::_ops::sqrt,
      at::_ops::rsqrt, at::_ops::sqrt_, at::_ops::abs, at::_ops::tanh, at::_ops::tanh_,
      at::_ops::sigmoid, at::_ops::sigmoid_, at::_ops::relu, at::_ops::relu_, at::_ops::gelu,
      at::_ops::gelu_backward, at::_ops::silu, at::_ops::silu_backward, at::_ops::tanh_backward,
      at::_ops::sigmoid_backward, at::_ops::threshold_backward, at::_ops::pow_Tensor_Scalar,
      at::_ops::clamp, at::_ops::reciprocal, at::_ops::sum, at::_ops::sum_dim_IntList,
      at::_ops::mean, at::_ops::mean_dim, at::_ops::_softmax, at::_ops::_log_softmax,
      at::_ops::_softmax_backward_data, at::_ops::_log_softmax_backward_data, at::_ops::mm,
      at::_ops::addmm, at::_ops::bmm, at::_ops::native_layer_norm,
      at::_ops::native_layer_norm_backward, at::_ops::embedding, at::_ops::embedding_dense_backward,
      at::_ops::nll_loss_forward, at::_ops::nll_loss_backward, at::_ops::slice_backward,
      at::_ops::select_backward, at::_ops::cat, at::_ops::zero_, at::_ops::fill__Scalar,
      at::_ops::lerp__Scalar, at::_ops::addcmul_, at::_ops::addcdiv_, at::_ops::where_self,
      at::_ops::eq_Tensor, at::_ops::eq_Scalar, at::_ops::clone, at::_ops::zeros_like,
      at::_ops::ones_like, at::_ops::masked_fill_Scalar, at::_ops::convolution_backward,
      at::_ops::native_batch_norm_backward, at::_ops::max_pool2d_with_indices, at::_ops::argmax,
      at::_ops::addcdiv, at::_ops::addcmul, at::_ops::lerp_Scalar, at::_ops::bitwise_and_Tensor,
      at::_ops::gt_Scalar, at::_ops::lt_Scalar, at::_ops::le_Scalar, at::_ops::ge_Scalar>(library,
                                                                                          autograd);
  // It writes statistics, which its schema does not say: Python's dispatcher takes it apart at
  // autograd, so nothing may hide that.
  register_unboxed<at::_ops::native_batch_norm>(library);
}

}  // namespace torch_lazy
