// View operators that scripts call most, without boxing.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_reshape_alias_ops.h>
#include <ATen/ops/_unsafe_view_ops.h>
#include <ATen/ops/alias_ops.h>
#include <ATen/ops/as_strided_ops.h>
#include <ATen/ops/detach_ops.h>
#include <ATen/ops/expand_ops.h>
#include <ATen/ops/permute_ops.h>
#include <ATen/ops/select_ops.h>
#include <ATen/ops/slice_ops.h>
#include <ATen/ops/split_ops.h>
#include <ATen/ops/squeeze_ops.h>
#include <ATen/ops/t_ops.h>
#include <ATen/ops/transpose_ops.h>
#include <ATen/ops/unbind_ops.h>
#include <ATen/ops/unsafe_split_ops.h>
#include <ATen/ops/unsqueeze_ops.h>
#include <ATen/ops/view_ops.h>

#include "device/register.h"
#include "device/unboxed.h"

namespace torch_lazy {

void register_view_operators(torch::Library& library) {
  const auto add = [&]<class Operator>(Operator) {
    const std::string overload = Operator::overload_name;
    const std::string name = Operator::name + (overload.empty() ? "" : "." + overload);
    library.impl(name.c_str(), &Unboxed<Operator>::kernel);
  };
  add(at::_ops::view{});
  add(at::_ops::_unsafe_view{});
  add(at::_ops::expand{});
  add(at::_ops::select_int{});
  add(at::_ops::slice_Tensor{});
  add(at::_ops::transpose_int{});
  add(at::_ops::t{});
  add(at::_ops::permute{});
  add(at::_ops::unsqueeze{});
  add(at::_ops::squeeze_dim{});
  add(at::_ops::detach{});
  add(at::_ops::alias{});
  add(at::_ops::as_strided{});
  add(at::_ops::split_Tensor{});
  add(at::_ops::unsafe_split_Tensor{});
  add(at::_ops::unbind_int{});
  add(at::_ops::_reshape_alias{});
  add(at::_ops::t_{});
  add(at::_ops::transpose_{});
  add(at::_ops::unsqueeze_{});
  add(at::_ops::squeeze__dim{});
  add(at::_ops::detach_{});
}

}  // namespace torch_lazy
