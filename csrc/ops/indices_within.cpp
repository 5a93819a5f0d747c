#include "ops/indices_within.h"

namespace torch_lazy {
namespace {

template <class Integer>
bool within(const at::Tensor& flat, const IndexRange& range) {
  const Integer* const data = flat.const_data_ptr<Integer>();
  const uint64_t lowest = uint64_t(range.lowest), extent = uint64_t(range.limit) - lowest;
  const bool ignores = range.ignored.has_value();
  const int64_t ignored = range.ignored.value_or(0);
  bool all = true;
  for (int64_t i = 0, count = flat.numel(); i < count; ++i)
    all &= (uint64_t(data[i]) - lowest < extent) | (ignores & (data[i] == ignored));
  return all;
}

}  // namespace

bool indices_within(const at::Tensor& indices, const IndexRange& range) {
  const at::Tensor flat = indices.contiguous();
  return flat.scalar_type() == c10::ScalarType::Long ? within<int64_t>(flat, range)
                                                     : within<int32_t>(flat, range);
}

}  // namespace torch_lazy
