// Affine functions of a kernel's loop indices: how a value of the graph is indexed inside a kernel.
#pragma once

#include <c10/util/SmallVector.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "passes/core_graph.h"

namespace torch_lazy::codegen {

// constant + sum of coefficient * axis index.
struct Affine {
  int64_t constant = 0;
  c10::SmallVector<int64_t, 6> coefficients;  // one per axis

  explicit Affine(size_t axes) : coefficients(axes, 0) {}
  bool operator==(const Affine& other) const {
    return constant == other.constant && coefficients == other.coefficients;
  }
  Affine& add(const Affine& other, int64_t factor) {
    constant += factor * other.constant;
    for (size_t i = 0; i < coefficients.size(); ++i)
      coefficients[i] += factor * other.coefficients[i];
    return *this;
  }
};

// One affine per dimension of a tensor.
using IndexMap = std::vector<Affine>;

// The element, in a memory block, that a map names under a layout of as many dimensions.
inline Affine address(const IndexMap& map, const Layout& layout, size_t axes) {
  Affine result(axes);
  result.constant = layout.offset;
  for (size_t d = 0; d < map.size(); ++d) result.add(map[d], layout.strides[d]);
  return result;
}

// Smallest and largest value over all indices of the axes.
std::pair<int64_t, int64_t> range_of(const Affine& affine, c10::ArrayRef<int64_t> extents);

// The reverse: which index of a dense tensor lies at `linear`, for all values of the axes, whose
// extents are given. Empty where the index is not affine in the axes (an axis runs over several
// dimensions of the tensor at once) or leaves the tensor.
std::optional<IndexMap> index_at(const Affine& linear, c10::ArrayRef<int64_t> sizes,
                                 c10::ArrayRef<int64_t> strides, c10::ArrayRef<int64_t> extents);

}  // namespace torch_lazy::codegen
