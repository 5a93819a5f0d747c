// Copies of CPU tensors that deferred operations take: a program may write to them afterwards.
//
// A snapshot has no gaps, so where the tensor lay in its own storage does not matter: a slice of a
// shuffled index would otherwise be another trace at each step. The order of its strides, and which
// dimensions are expanded, are the tensor's, for operators lay out their results by them.
#pragma once

#include <ATen/core/Tensor.h>

namespace torch_lazy {

at::DimVector snapshot_strides(const at::Tensor& tensor);
at::Tensor make_snapshot(const at::Tensor& tensor);

}  // namespace torch_lazy
