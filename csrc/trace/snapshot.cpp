#include "trace/snapshot.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/empty_strided.h>

#include <cstring>

namespace torch_lazy {
namespace {

bool is_expanded(const at::Tensor& tensor, int64_t dimension) {
  return tensor.stride(dimension) == 0 && tensor.size(dimension) > 1;
}

// Sizes of what is in memory.
at::DimVector unexpanded_sizes(const at::Tensor& tensor) {
  at::DimVector sizes(tensor.sizes());
  for (int64_t i = 0; i < tensor.dim(); ++i)
    if (is_expanded(tensor, i)) sizes[size_t(i)] = 1;
  return sizes;
}

}  // namespace

at::DimVector snapshot_strides(const at::Tensor& tensor) {
  if (tensor.is_non_overlapping_and_dense()) return at::DimVector(tensor.strides());
  at::DimVector strides(at::infer_dense_strides(unexpanded_sizes(tensor), tensor.strides()));
  for (int64_t i = 0; i < tensor.dim(); ++i)
    if (is_expanded(tensor, i)) strides[size_t(i)] = 0;
  return strides;
}

at::Tensor make_snapshot(const at::Tensor& tensor) {
  // Of a number to the operator's one to two microseconds this takes a tenth; what is larger may be
  // copied by several threads.
  constexpr size_t kLeastForOperator = 4096;
  if (tensor.is_non_overlapping_and_dense()) {
    if (tensor.nbytes() >= kLeastForOperator || tensor.is_conj() || tensor.is_neg())
      return at::clone(tensor, at::MemoryFormat::Preserve);
    at::Tensor made =
        at::detail::empty_strided_cpu(tensor.sizes(), tensor.strides(), tensor.scalar_type());
    if (tensor.nbytes() > 0)
      std::memcpy(made.mutable_data_ptr(), tensor.const_data_ptr(), tensor.nbytes());
    return made;
  }
  const at::DimVector sizes = unexpanded_sizes(tensor), strides = snapshot_strides(tensor);
  at::Tensor made = at::empty_strided(sizes, strides, tensor.options());
  made.copy_(tensor.as_strided(sizes, tensor.strides()));
  return made.as_strided(tensor.sizes(), strides);
}

}  // namespace torch_lazy
