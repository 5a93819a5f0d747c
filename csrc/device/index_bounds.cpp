#include "device/index_bounds.h"

#include "ops/indices_within.h"
#include "ops/thread_state.h"

namespace torch_lazy {
namespace {

// Takes some microseconds. The run of a window looks at all indices.
constexpr int64_t kMostLookedAt = 16'384;

}  // namespace

bool all_within(LazyTensorImpl& indices, int64_t lowest, int64_t limit) {
  const c10::ScalarType dtype = c10::typeMetaToScalarType(indices.dtype());
  if (dtype != c10::ScalarType::Long && dtype != c10::ScalarType::Int) return true;
  const StepThreadState state;
  at::Tensor distinct = indices.resident_inner();
  for (int64_t dim = distinct.dim(); dim-- > 0;)
    if (distinct.stride(dim) == 0 && distinct.size(dim) > 0) distinct = distinct.select(dim, 0);
  if (distinct.numel() > kMostLookedAt) return true;
  return indices_within(distinct, lowest, limit);
}

}  // namespace torch_lazy
