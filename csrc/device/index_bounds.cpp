#include "device/index_bounds.h"

#include "ops/thread_state.h"

namespace torch_lazy {
namespace {

// Takes some microseconds. The run of a window looks at all indices, on all threads.
constexpr int64_t kMostLookedAt = 16'384;

template <class Integer>
bool within(const at::Tensor& indices, int64_t lowest, int64_t limit) {
  const Integer* const data = indices.const_data_ptr<Integer>();
  const uint64_t range = uint64_t(limit) - uint64_t(lowest);
  bool all = true;
  for (int64_t i = 0, count = indices.numel(); i < count; ++i)
    all &= uint64_t(data[i]) - uint64_t(lowest) < range;
  return all;
}

}  // namespace

bool all_within(LazyTensorImpl& indices, int64_t lowest, int64_t limit) {
  const c10::ScalarType dtype = c10::typeMetaToScalarType(indices.dtype());
  if (dtype != c10::ScalarType::Long && dtype != c10::ScalarType::Int) return true;
  const StepThreadState state;
  at::Tensor distinct = indices.resident_inner();
  for (int64_t dim = distinct.dim(); dim-- > 0;)
    if (distinct.stride(dim) == 0 && distinct.size(dim) > 0) distinct = distinct.select(dim, 0);
  if (distinct.numel() > kMostLookedAt) return true;
  const at::Tensor flat = distinct.contiguous();
  return dtype == c10::ScalarType::Long ? within<int64_t>(flat, lowest, limit)
                                        : within<int32_t>(flat, lowest, limit);
}

}  // namespace torch_lazy
