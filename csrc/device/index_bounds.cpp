#include "device/index_bounds.h"

#include "ops/thread_state.h"

namespace torch_lazy {
namespace {

// Takes some microseconds. The run of a window looks at all indices.
constexpr int64_t kMostLookedAt = 16'384;

}  // namespace

bool all_within(const at::Tensor& indices, const IndexRange& range) {
  const c10::ScalarType dtype = indices.scalar_type();
  if (dtype != c10::ScalarType::Long && dtype != c10::ScalarType::Int) return true;
  const StepThreadState state;
  at::Tensor distinct = indices;
  for (int64_t dim = distinct.dim(); dim-- > 0;)
    if (distinct.stride(dim) == 0 && distinct.size(dim) > 0) distinct = distinct.select(dim, 0);
  if (distinct.numel() > kMostLookedAt) return true;
  return indices_within(distinct, range);
}

}  // namespace torch_lazy
