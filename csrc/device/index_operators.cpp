// Operators that gather, scatter, order and join elements, without boxing.
#include <ATen/core/Tensor.h>
#include <ATen/ops/cumsum_ops.h>
#include <ATen/ops/flip_ops.h>
#include <ATen/ops/gather_ops.h>
#include <ATen/ops/index_add_ops.h>
#include <ATen/ops/index_fill_ops.h>
#include <ATen/ops/index_ops.h>
#include <ATen/ops/index_put_ops.h>
#include <ATen/ops/index_select_ops.h>
#include <ATen/ops/masked_fill_ops.h>
#include <ATen/ops/masked_scatter_ops.h>
#include <ATen/ops/masked_select_ops.h>
#include <ATen/ops/nonzero_ops.h>
#include <ATen/ops/repeat_ops.h>
#include <ATen/ops/roll_ops.h>
#include <ATen/ops/scatter_add_ops.h>
#include <ATen/ops/scatter_ops.h>
#include <ATen/ops/sort_ops.h>
#include <ATen/ops/stack_ops.h>
#include <ATen/ops/take_ops.h>
#include <ATen/ops/topk_ops.h>
#include <ATen/ops/tril_ops.h>
#include <ATen/ops/triu_ops.h>

#include "device/past_autograd.h"
#include "device/register.h"

namespace torch_lazy {

void register_index_operators(torch::Library& library, torch::Library& autograd) {
  register_past_autograd<
      at::_ops::index_Tensor, at::_ops::index_put_, at::_ops::index_select,
      at::_ops::index_fill__int_Scalar, at::_ops::index_add_, at::_ops::gather,
      at::_ops::scatter_src, at::_ops::scatter__src, at::_ops::scatter_add, at::_ops::scatter_add_,
      at::_ops::masked_fill__Scalar, at::_ops::masked_fill_Tensor, at::_ops::masked_select,
      at::_ops::masked_scatter_, at::_ops::nonzero, at::_ops::take, at::_ops::sort, at::_ops::topk,
      at::_ops::cumsum, at::_ops::flip, at::_ops::roll, at::_ops::stack, at::_ops::repeat,
      at::_ops::tril, at::_ops::triu>(library, autograd);
}

}  // namespace torch_lazy
