// Operators that make tensors from numbers, without boxing.
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange_ops.h>
#include <ATen/ops/full_like_ops.h>
#include <ATen/ops/full_ops.h>
#include <ATen/ops/new_full_ops.h>
#include <ATen/ops/new_ones_ops.h>
#include <ATen/ops/new_zeros_ops.h>
#include <ATen/ops/ones_ops.h>
#include <ATen/ops/scalar_tensor_ops.h>
#include <ATen/ops/zeros_ops.h>

#include "device/register.h"
#include "device/unboxed.h"

namespace torch_lazy {

void register_creation_operators(torch::Library& library) {
  register_unboxed<at::_ops::zeros, at::_ops::ones, at::_ops::full, at::_ops::full_like,
                   at::_ops::new_zeros, at::_ops::new_ones, at::_ops::new_full,
                   at::_ops::scalar_tensor, at::_ops::arange, at::_ops::arange_start,
                   at::_ops::arange_start_step>(library);
}

}  // namespace torch_lazy
