#include "ops/indices_within.h"

#include <cstring>

namespace torch_lazy {
namespace {

// Indices are looked at in vectors that every processor has. What is asked of one is computed by
// sums, as not every processor that this is compiled for compares vectors of 64-bit integers: the
// answer is the highest bit.
constexpr int64_t kLanes = 2;
using Lanes [[gnu::vector_size(kLanes * sizeof(uint64_t))]] = uint64_t;

template <class Integer>
Lanes load(const Integer* data) {
  using Loaded [[gnu::vector_size(kLanes * sizeof(Integer))]] = Integer;
  Loaded loaded;
  std::memcpy(&loaded, data, sizeof loaded);
  return __builtin_convertvector(loaded, Lanes);
}

// Is the index, or one of several, outside? The lowest is at most 0 and the limit at least 0, so
// that the difference which is negative does not wrap around.
template <class Indices>
Indices outside(Indices index, const IndexRange& range) {
  return (index - uint64_t(range.lowest)) | (uint64_t(range.limit) - 1 - index);
}

template <class Indices>
Indices differs(Indices index, int64_t other) {
  const Indices bits = index ^ uint64_t(other);
  return bits | (0 - bits);
}

// Whether the answer is no for all.
template <class Integer, class Question>
bool none(const at::Tensor& flat, const Question& question) {
  const Integer* const data = flat.const_data_ptr<Integer>();
  const int64_t count = flat.numel();
  Lanes found{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) found |= question(load(data + i));
  uint64_t any = 0;
  for (; i < count; ++i) any |= question(uint64_t(int64_t(data[i])));
  for (int64_t lane = 0; lane < kLanes; ++lane) any |= found[lane];
  return any >> 63 == 0;
}

template <class Integer>
bool within(const at::Tensor& flat, const IndexRange& range) {
  if (!range.ignored) return none<Integer>(flat, [&](auto index) { return outside(index, range); });
  return none<Integer>(
      flat, [&](auto index) { return outside(index, range) & differs(index, *range.ignored); });
}

}  // namespace

bool indices_within(const at::Tensor& indices, const IndexRange& range) {
  const at::Tensor flat = indices.contiguous();
  return flat.scalar_type() == c10::ScalarType::Long ? within<int64_t>(flat, range)
                                                     : within<int32_t>(flat, range);
}

}  // namespace torch_lazy
