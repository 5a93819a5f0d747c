#include "trace/snapshot.h"

#include <ATen/ExpandUtils.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/empty_strided.h>

#include "trace/plain_copy.h"

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
  at::Tensor copy = plain_clone(tensor);
  if (copy.defined()) return copy;
  if (tensor.is_non_overlapping_and_dense()) return at::clone(tensor, at::MemoryFormat::Preserve);
  const at::DimVector sizes = unexpanded_sizes(tensor), strides = snapshot_strides(tensor);
  at::Tensor made = at::empty_strided(sizes, strides, tensor.options());
  made.copy_(tensor.as_strided(sizes, tensor.strides()));
  return made.as_strided(tensor.sizes(), strides);
}

}  // namespace torch_lazy
