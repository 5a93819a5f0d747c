// View operators that scripts call most, without boxing.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_reshape_alias_ops.h>
#include <ATen/ops/_unsafe_view_ops.h>
#include <ATen/ops/alias_ops.h>
#include <ATen/ops/as_strided_ops.h>
#include <ATen/ops/detach_ops.h>
#include <ATen/ops/diagonal_ops.h>
#include <ATen/ops/expand_ops.h>
#include <ATen/ops/permute_ops.h>
#include <ATen/ops/select_ops.h>
#include <ATen/ops/slice_ops.h>
#include <ATen/ops/split_ops.h>
#include <ATen/ops/split_with_sizes_ops.h>
#include <ATen/ops/squeeze_ops.h>
#include <ATen/ops/t_ops.h>
#include <ATen/ops/transpose_ops.h>
#include <ATen/ops/unbind_ops.h>
#include <ATen/ops/unfold_ops.h>
#include <ATen/ops/unsafe_split_ops.h>
#include <ATen/ops/unsqueeze_ops.h>
#include <ATen/ops/view_ops.h>

#include "device/past_autograd.h"
#include "device/register.h"
#include "device/unboxed.h"

namespace torch_lazy {

void register_view_operators(torch::Library& library, torch::Library& autograd) {
  register_unboxed<at::_ops::view, at::_ops::expand, at::_ops::select_int, at::_ops::slice_Tensor,
                   at::_ops::transpose_int, at::_ops::t, at::_ops::permute, at::_ops::unsqueeze,
                   at::_ops::squeeze_dim, at::_ops::detach, at::_ops::alias, at::_ops::as_strided,
                   at::_ops::split_Tensor, at::_ops::unbind_int, at::_ops::_reshape_alias,
                   at::_ops::t_, at::_ops::transpose_, at::_ops::unsqueeze_, at::_ops::squeeze__dim,
                   at::_ops::detach_, at::_ops::view_dtype, at::_ops::diagonal, at::_ops::squeeze,
                   at::_ops::squeeze_dims, at::_ops::squeeze_, at::_ops::unfold,
                   at::_ops::split_with_sizes>(library);
  // Views that autograd does not know as such.
  register_past_autograd<at::_ops::_unsafe_view, at::_ops::unsafe_split_Tensor>(library, autograd);
}

}  // namespace torch_lazy
