#include "passes/layout.h"

#include <ATen/ExpandUtils.h>
#include <c10/util/hash.h>

#include <algorithm>

namespace torch_lazy {
namespace {

// A dimension that moves through memory.
struct Axis {
  int64_t size, stride;
};
using Axes = c10::SmallVector<Axis, 5>;
using Digits = c10::SmallVector<int64_t, 8>;

// The set of elements as dimensions of falling stride, without those of one element or of stride 0,
// and with those joined that run on in one another. The set must not be empty.
Axes axes_of(const Layout& layout) {
  Axes axes;
  for (size_t i = 0; i < layout.sizes.size(); ++i)
    if (layout.sizes[i] > 1 && layout.strides[i] != 0)
      axes.push_back({layout.sizes[i], layout.strides[i]});
  std::sort(axes.begin(), axes.end(),
            [](const Axis& a, const Axis& b) { return a.stride > b.stride; });
  size_t kept = 0;
  for (size_t i = 1; i < axes.size(); ++i) {
    if (axes[kept].stride == axes[i].stride * axes[i].size)
      axes[kept] = {axes[kept].size * axes[i].size, axes[i].stride};
    else
      axes[++kept] = axes[i];
  }
  if (!axes.empty()) axes.resize(kept + 1);
  return axes;
}

// Whether each stride is longer than all that the shorter ones span, so that an element's distance
// from the first is written by its indices in one way only.
bool nested(const Axes& axes) {
  int64_t span = 0;
  for (size_t i = axes.size(); i-- > 0;) {
    if (axes[i].stride <= span) return false;
    span += (axes[i].size - 1) * axes[i].stride;
  }
  return true;
}

// `distance` in units of the strides, the longest first. Returns what is left over.
int64_t digits_of(int64_t distance, const Axes& radix, Digits& digits) {
  digits.clear();
  for (const Axis& axis : radix) {
    digits.push_back(distance / axis.stride);
    distance %= axis.stride;
  }
  return distance;
}

// First and last digit of a set's elements at each stride of a radix.
struct Box {
  Digits first, last;
};

// False where the set has elements between the radix's steps.
bool box_of(const Layout& layout, int64_t origin, const Axes& radix, Box& box) {
  if (digits_of(layout.offset - origin, radix, box.first) != 0) return false;
  box.last = box.first;
  Digits step;
  for (const Axis& axis : axes_of(layout)) {
    if (digits_of(axis.stride, radix, step) != 0) return false;
    for (size_t i = 0; i < step.size(); ++i) box.last[i] += (axis.size - 1) * step[i];
  }
  return true;
}

// Looks for a stride at which the two sets' digits, counted from `origin`, never meet.
bool disjoint_from(int64_t origin, const Layout& a, const Layout& b, Axes radix) {
  Box of_a, of_b;
  if (!box_of(a, origin, radix, of_a) || !box_of(b, origin, radix, of_b)) return false;
  bool apart = false;
  for (size_t i = 0; i < radix.size(); ++i) {
    radix[i].size = std::max(of_a.last[i], of_b.last[i]) + 1;
    apart |= of_a.last[i] < of_b.first[i] || of_b.last[i] < of_a.first[i];
  }
  // Digits tell elements apart only where none carries into the next.
  return apart && nested(radix);
}

}  // namespace

int64_t Layout::numel() const {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return count;
}

int64_t Layout::end() const {
  int64_t last = offset;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return offset;
    last += (sizes[i] - 1) * strides[i];
  }
  return last + 1;
}

size_t LayoutHash::operator()(const Layout& layout) const {
  size_t hash = std::hash<int64_t>()(layout.offset) + layout.sizes.size();
  for (const int64_t size : layout.sizes) hash = c10::hash_combine(hash, size_t(size));
  for (const int64_t stride : layout.strides) hash = c10::hash_combine(hash, size_t(stride));
  return hash;
}

int64_t product(c10::IntArrayRef sizes, c10::IntArrayRef dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= sizes[size_t(dim)];
  return count;
}

bool is_dense(c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  std::vector<size_t> order;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] != 1) order.push_back(d);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return strides[a] < strides[b]; });
  int64_t expected = 1;
  for (const size_t d : order) {
    if (strides[d] != expected) return false;
    expected *= sizes[d];
  }
  return true;
}

Layout dense_layout(const Layout& like) {
  Layout layout;
  layout.sizes = like.sizes;
  const std::vector<int64_t> strides = at::infer_dense_strides(like.sizes, like.strides);
  layout.strides.assign(strides.begin(), strides.end());
  return layout;
}

std::optional<Layout> moved(const Layout& memory, const Layout& view, const Layout& target) {
  std::vector<size_t> order;  // dimensions of the view, the longest stride first
  for (size_t d = 0; d < view.sizes.size(); ++d)
    if (view.sizes[d] != 1 && view.strides[d] != 0) order.push_back(d);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return view.strides[a] > view.strides[b]; });
  // How far a distance in memory is in the target: in steps along the view's dimensions.
  std::vector<int64_t> last(view.sizes.size(), 0);  // the largest index that is reached
  const auto distance_in_target = [&](int64_t distance, int64_t times) -> std::optional<int64_t> {
    int64_t result = 0;
    for (const size_t d : order) {
      const int64_t steps = distance / view.strides[d];
      distance %= view.strides[d];
      last[d] += steps * times;
      result += steps * target.strides[d];
    }
    return distance == 0 ? std::optional(result) : std::nullopt;
  };
  Layout result = memory;
  const auto start = distance_in_target(memory.offset - view.offset, 1);
  if (memory.offset < view.offset || !start) return std::nullopt;
  result.offset = target.offset + *start;
  for (size_t d = 0; d < memory.sizes.size(); ++d) {
    if (memory.sizes[d] == 1) continue;
    const auto stride = distance_in_target(memory.strides[d], memory.sizes[d] - 1);
    if (!stride) return std::nullopt;
    result.strides[d] = *stride;
  }
  // Where an index would carry into the next dimension, distances are no sums of steps.
  for (const size_t d : order)
    if (last[d] >= view.sizes[d]) return std::nullopt;
  return result;
}

bool has_distinct_elements(const Layout& layout) {
  if (layout.numel() == 0) return true;
  for (size_t i = 0; i < layout.sizes.size(); ++i)
    if (layout.sizes[i] > 1 && layout.strides[i] == 0) return false;
  return nested(axes_of(layout));
}

bool contains(const Layout& outer, const Layout& inner) {
  if (inner.numel() == 0 || inner == outer) return true;
  if (outer.numel() == 0 || inner.offset < outer.offset || inner.end() > outer.end()) return false;
  const Axes radix = axes_of(outer);
  Box box;
  if (!nested(radix) || !box_of(inner, outer.offset, radix, box)) return false;
  for (size_t i = 0; i < radix.size(); ++i)
    if (box.last[i] >= radix[i].size) return false;
  return true;
}

bool disjoint(const Layout& a, const Layout& b) {
  if (a.numel() == 0 || b.numel() == 0) return true;
  if (a.end() <= b.offset || b.end() <= a.offset) return true;
  Axes radix = axes_of(a);
  for (const Axis& axis : axes_of(b)) radix.push_back(axis);
  radix.push_back({1, 1});
  std::sort(radix.begin(), radix.end(),
            [](const Axis& x, const Axis& y) { return x.stride > y.stride; });
  radix.erase(std::unique(radix.begin(), radix.end(),
                          [](const Axis& x, const Axis& y) { return x.stride == y.stride; }),
              radix.end());
  // Slices of one tensor have their own starts, or the storage's, on the same grid.
  return disjoint_from(0, a, b, radix) || disjoint_from(std::min(a.offset, b.offset), a, b, radix);
}

}  // namespace torch_lazy
