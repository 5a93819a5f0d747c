// Where the elements of a tensor lie in its storage, and how two such sets relate.
#pragma once

#include <c10/util/ArrayRef.h>
#include <c10/util/SmallVector.h>

#include <cstdint>
#include <optional>

namespace torch_lazy {

struct Layout {
  c10::SmallVector<int64_t, 5> sizes, strides;
  int64_t offset = 0;  // elements from the start of the storage

  bool operator==(const Layout&) const = default;
  int64_t numel() const;
  int64_t end() const;  // one past the last element; `offset` where there are none
};

struct LayoutHash {
  size_t operator()(const Layout& layout) const;
};

// How many elements the dimensions have together.
int64_t product(c10::IntArrayRef sizes, c10::IntArrayRef dims);

// A permuted contiguous tensor: every element from the first to the last has exactly one index.
bool is_dense(c10::IntArrayRef sizes, c10::IntArrayRef strides);

// A dense layout of the same sizes whose dimensions follow in the same order, from 0.
Layout dense_layout(const Layout& like);

// Where the elements of `memory` come to lie when those of `view`, which reaches all of them, go to
// `target`, a layout of the view's sizes. None where that is no layout.
std::optional<Layout> moved(const Layout& memory, const Layout& view, const Layout& target);

// The next three are proofs: false means that none was found.

// No two indices reach the same element.
bool has_distinct_elements(const Layout& layout);
// Every element of `inner` is one of `outer`.
bool contains(const Layout& outer, const Layout& inner);
// No element is in both.
bool disjoint(const Layout& a, const Layout& b);

}  // namespace torch_lazy
