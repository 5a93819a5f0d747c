#include "passes/view_steps.h"

#include <algorithm>

namespace torch_lazy {

std::optional<ViewSteps> steps_of(const Layout& view, c10::IntArrayRef sizes,
                                  c10::IntArrayRef strides) {
  if (view.numel() == 0 || view.offset < 0 || !is_dense(sizes, strides)) return std::nullopt;
  c10::SmallVector<size_t, 5> order;  // the tensor's dimensions, the longest stride first
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] > 1) order.push_back(d);
  std::ranges::sort(order, [&](size_t a, size_t b) { return strides[a] > strides[b]; });

  ViewSteps steps;
  steps.begin.resize(sizes.size(), 0);
  int64_t left = view.offset;
  for (const size_t d : order) {
    steps.begin[d] = left / strides[d];
    left %= strides[d];
  }
  if (left != 0) return std::nullopt;

  auto last = steps.begin;
  for (size_t d = 0; d < view.sizes.size(); ++d) {
    ViewSteps::Along& along = steps.along.emplace_back();
    const int64_t stride = view.strides[d];
    if (view.sizes[d] == 1 || stride == 0) continue;
    const auto longest =
        std::ranges::find_if(order, [&](size_t other) { return stride >= strides[other]; });
    if (longest == order.end() || stride % strides[*longest] != 0) return std::nullopt;
    along = {.dim = *longest, .by = stride / strides[*longest]};
    last[along.dim] += (view.sizes[d] - 1) * along.by;
  }
  for (size_t d = 0; d < sizes.size(); ++d)
    if (last[d] >= sizes[d]) return std::nullopt;
  return steps;
}

std::optional<c10::SmallVector<int64_t, 5>> begin_of_box(const Layout& view, c10::IntArrayRef sizes,
                                                         c10::IntArrayRef strides) {
  if (view.sizes.size() != sizes.size()) return std::nullopt;
  const auto steps = steps_of(view, sizes, strides);
  if (!steps) return std::nullopt;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (view.sizes[d] > 1 && steps->along[d] != ViewSteps::Along{.dim = d, .by = 1})
      return std::nullopt;
  return steps->begin;
}

}  // namespace torch_lazy
