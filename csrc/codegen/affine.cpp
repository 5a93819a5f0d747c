#include "codegen/affine.h"

#include <algorithm>
#include <numeric>

namespace torch_lazy::codegen {

std::pair<int64_t, int64_t> range_of(const Affine& affine, c10::ArrayRef<int64_t> extents) {
  int64_t low = affine.constant, high = affine.constant;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    const int64_t reach = affine.coefficients[axis] * (extents[axis] - 1);
    (reach < 0 ? low : high) += reach;
  }
  return {low, high};
}

std::optional<IndexMap> index_at(const Affine& linear, c10::ArrayRef<int64_t> sizes,
                                 c10::ArrayRef<int64_t> strides, c10::ArrayRef<int64_t> extents) {
  const size_t axes = extents.size();
  std::vector<size_t> order;  // dimensions by falling stride
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] > 1) order.push_back(d);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return strides[a] > strides[b]; });

  IndexMap map(sizes.size(), Affine(axes));
  const auto decompose = [&](int64_t value, auto&& part) {
    for (const size_t d : order) {
      const int64_t quotient = value / strides[d];
      part(map[d], quotient);
      value -= quotient * strides[d];
    }
    return value == 0;
  };
  if (!decompose(linear.constant, [](Affine& affine, int64_t q) { affine.constant = q; }))
    return std::nullopt;
  for (size_t axis = 0; axis < axes; ++axis) {
    const auto set = [&](Affine& affine, int64_t q) { affine.coefficients[axis] = q; };
    if (!decompose(linear.coefficients[axis], set)) return std::nullopt;
  }
  // The address is right by construction; as no two indices of a dense tensor share one, indices
  // within bounds are the right ones.
  for (const size_t d : order) {
    const auto [low, high] = range_of(map[d], extents);
    if (low < 0 || high >= sizes[d]) return std::nullopt;
  }
  return map;
}

}  // namespace torch_lazy::codegen
