#include "ops/indices_within.h"

namespace torch_lazy {
namespace {

template <class Integer>
bool within(const at::Tensor& flat, int64_t lowest, int64_t limit) {
  const Integer* const data = flat.const_data_ptr<Integer>();
  const uint64_t range = uint64_t(limit) - uint64_t(lowest);
  bool all = true;
  for (int64_t i = 0, count = flat.numel(); i < count; ++i)
    all &= uint64_t(data[i]) - uint64_t(lowest) < range;
  return all;
}

}  // namespace

bool indices_within(const at::Tensor& indices, int64_t lowest, int64_t limit) {
  const at::Tensor flat = indices.contiguous();
  return flat.scalar_type() == c10::ScalarType::Long ? within<int64_t>(flat, lowest, limit)
                                                     : within<int32_t>(flat, lowest, limit);
}

}  // namespace torch_lazy
