// Further pointwise operators and reductions, without boxing.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_foreach_add_ops.h>
#include <ATen/ops/_foreach_mul_ops.h>
#include <ATen/ops/abs_ops.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/all_ops.h>
#include <ATen/ops/amax_ops.h>
#include <ATen/ops/amin_ops.h>
#include <ATen/ops/any_ops.h>
#include <ATen/ops/argmin_ops.h>
#include <ATen/ops/baddbmm_ops.h>
#include <ATen/ops/bitwise_not_ops.h>
#include <ATen/ops/bitwise_or_ops.h>
#include <ATen/ops/ceil_ops.h>
#include <ATen/ops/clamp_min_ops.h>
#include <ATen/ops/clamp_ops.h>
#include <ATen/ops/cos_ops.h>
#include <ATen/ops/count_nonzero_ops.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/dot_ops.h>
#include <ATen/ops/elu_ops.h>
#include <ATen/ops/erf_ops.h>
#include <ATen/ops/exp_ops.h>
#include <ATen/ops/expm1_ops.h>
#include <ATen/ops/fill_ops.h>
#include <ATen/ops/floor_divide_ops.h>
#include <ATen/ops/floor_ops.h>
#include <ATen/ops/ge_ops.h>
#include <ATen/ops/gt_ops.h>
#include <ATen/ops/hardtanh_ops.h>
#include <ATen/ops/isnan_ops.h>
#include <ATen/ops/le_ops.h>
#include <ATen/ops/leaky_relu_ops.h>
#include <ATen/ops/linalg_vector_norm_ops.h>
#include <ATen/ops/log1p_ops.h>
#include <ATen/ops/logical_and_ops.h>
#include <ATen/ops/logical_not_ops.h>
#include <ATen/ops/logical_or_ops.h>
#include <ATen/ops/lt_ops.h>
#include <ATen/ops/max_ops.h>
#include <ATen/ops/maximum_ops.h>
#include <ATen/ops/min_ops.h>
#include <ATen/ops/minimum_ops.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/mv_ops.h>
#include <ATen/ops/nan_to_num_ops.h>
#include <ATen/ops/ne_ops.h>
#include <ATen/ops/neg_ops.h>
#include <ATen/ops/pow_ops.h>
#include <ATen/ops/remainder_ops.h>
#include <ATen/ops/round_ops.h>
#include <ATen/ops/sgn_ops.h>
#include <ATen/ops/sign_ops.h>
#include <ATen/ops/sin_ops.h>
#include <ATen/ops/softplus_ops.h>
#include <ATen/ops/std_ops.h>
#include <ATen/ops/sub_ops.h>
#include <ATen/ops/trunc_ops.h>
#include <ATen/ops/var_ops.h>

#include "device/past_autograd.h"
#include "device/register.h"

namespace torch_lazy {

void register_pointwise_operators(torch::Library& library, torch::Library& autograd) {
  register_past_autograd<
      at::_ops::sub__Scalar, at::_ops::add__Scalar, at::_ops::mul__Scalar, at::_ops::div__Scalar,
      at::_ops::neg_, at::_ops::exp_, at::_ops::abs_, at::_ops::sin, at::_ops::cos, at::_ops::sin_,
      at::_ops::cos_, at::_ops::floor, at::_ops::ceil, at::_ops::round, at::_ops::trunc,
      at::_ops::sign, at::_ops::sgn, at::_ops::isnan, at::_ops::erf, at::_ops::log1p,
      at::_ops::expm1, at::_ops::nan_to_num, at::_ops::clamp_, at::_ops::clamp_min,
      at::_ops::clamp_Tensor, at::_ops::maximum, at::_ops::minimum, at::_ops::remainder_Scalar,
      at::_ops::remainder_Tensor, at::_ops::floor_divide, at::_ops::pow_Tensor_Tensor,
      at::_ops::ne_Scalar, at::_ops::ne_Tensor, at::_ops::lt_Tensor, at::_ops::gt_Tensor,
      at::_ops::le_Tensor, at::_ops::ge_Tensor, at::_ops::logical_and, at::_ops::logical_or,
      at::_ops::logical_not, at::_ops::bitwise_not, at::_ops::bitwise_or_Tensor, at::_ops::any,
      at::_ops::any_dim, at::_ops::all, at::_ops::all_dim, at::_ops::amax, at::_ops::amin,
      at::_ops::max, at::_ops::min, at::_ops::max_dim, at::_ops::min_dim, at::_ops::argmin,
      at::_ops::var_correction, at::_ops::std_correction, at::_ops::linalg_vector_norm,
      at::_ops::count_nonzero, at::_ops::mv, at::_ops::dot, at::_ops::baddbmm, at::_ops::softplus,
      at::_ops::elu, at::_ops::hardtanh, at::_ops::leaky_relu_, at::_ops::leaky_relu,
      at::_ops::fill__Tensor, at::_ops::_foreach_add_Scalar, at::_ops::_foreach_mul_Scalar>(
      library, autograd);
}

}  // namespace torch_lazy
