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
#include <ATen/ops/convolution_ops.h>
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

#include "device/register.h"
#include "device/unboxed.h"

namespace torch_lazy {

void register_hot_operators(torch::Library& library) {
  const auto add = [&]<class Operator>(Operator) {
    const std::string overload = Operator::overload_name;
    const std::string name = Operator::name + (overload.empty() ? "" : "." + overload);
    library.impl(name.c_str(), &Unboxed<Operator>::kernel);
  };
  add(at::_ops::add_Tensor{});
  add(at::_ops::add__Tensor{});
  add(at::_ops::sub_Tensor{});
  add(at::_ops::sub__Tensor{});
  add(at::_ops::mul_Tensor{});
  add(at::_ops::mul__Tensor{});
  add(at::_ops::div_Tensor{});
  add(at::_ops::div__Tensor{});
  add(at::_ops::add_Scalar{});
  add(at::_ops::sub_Scalar{});
  add(at::_ops::mul_Scalar{});
  add(at::_ops::div_Scalar{});
  add(at::_ops::rsub_Scalar{});
  add(at::_ops::neg{});
  add(at::_ops::exp{});
  add(at::_ops::log{});
  add(at::_ops::sqrt{});
  add(at::_ops::rsqrt{});
  add(at::_ops::sqrt_{});
  add(at::_ops::abs{});
  add(at::_ops::tanh{});
  add(at::_ops::tanh_{});
  add(at::_ops::sigmoid{});
  add(at::_ops::sigmoid_{});
  add(at::_ops::relu{});
  add(at::_ops::relu_{});
  add(at::_ops::gelu{});
  add(at::_ops::gelu_backward{});
  add(at::_ops::silu{});
  add(at::_ops::silu_backward{});
  add(at::_ops::tanh_backward{});
  add(at::_ops::sigmoid_backward{});
  add(at::_ops::threshold_backward{});
  add(at::_ops::pow_Tensor_Scalar{});
  add(at::_ops::clamp{});
  add(at::_ops::reciprocal{});
  add(at::_ops::sum{});
  add(at::_ops::sum_dim_IntList{});
  add(at::_ops::mean{});
  add(at::_ops::mean_dim{});
  add(at::_ops::_softmax{});
  add(at::_ops::_log_softmax{});
  add(at::_ops::_softmax_backward_data{});
  add(at::_ops::_log_softmax_backward_data{});
  add(at::_ops::mm{});
  add(at::_ops::addmm{});
  add(at::_ops::bmm{});
  add(at::_ops::native_layer_norm{});
  add(at::_ops::native_layer_norm_backward{});
  add(at::_ops::embedding{});
  add(at::_ops::embedding_dense_backward{});
  add(at::_ops::nll_loss_forward{});
  add(at::_ops::nll_loss_backward{});
  add(at::_ops::slice_backward{});
  add(at::_ops::select_backward{});
  add(at::_ops::cat{});
  add(at::_ops::zero_{});
  add(at::_ops::fill__Scalar{});
  add(at::_ops::lerp__Scalar{});
  add(at::_ops::addcmul_{});
  add(at::_ops::addcdiv_{});
  add(at::_ops::where_self{});
  add(at::_ops::eq_Tensor{});
  add(at::_ops::eq_Scalar{});
  add(at::_ops::clone{});
  add(at::_ops::zeros_like{});
  add(at::_ops::ones_like{});
  add(at::_ops::masked_fill_Scalar{});
  add(at::_ops::convolution{});
  add(at::_ops::convolution_backward{});
  add(at::_ops::native_batch_norm{});
  add(at::_ops::native_batch_norm_backward{});
  add(at::_ops::max_pool2d_with_indices{});
  add(at::_ops::argmax{});
  add(at::_ops::addcdiv{});
  add(at::_ops::addcmul{});
  add(at::_ops::lerp_Scalar{});
  add(at::_ops::bitwise_and_Tensor{});
  add(at::_ops::gt_Scalar{});
  add(at::_ops::lt_Scalar{});
  add(at::_ops::le_Scalar{});
  add(at::_ops::ge_Scalar{});
}

}  // namespace torch_lazy
