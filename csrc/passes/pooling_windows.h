// The windows of a pooling, or of an enlarging by whole factors, and how a kernel reads and writes
// their elements: by shifted views, or side by side.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "passes/decompose_rules.h"

namespace torch_lazy::pooling {

// A kernel reads as many shifted views for each of its results.
constexpr int64_t kMostPositions = 32;

// The windows along one dimension. The i-th covers `kernel` elements at a distance of `dilation`
// from the element i * stride - before on.
struct Windows {
  size_t dim = 0;
  int64_t kernel = 1, stride = 1;
  int64_t before = 0;  // elements of padding before the first of the input
  int64_t dilation = 1;
  int64_t input = 0;  // elements of the input, without padding
  int64_t count = 0;  // of the windows

  // How far the last one reaches beyond the input.
  int64_t after() const {
    return std::max<int64_t>((count - 1) * stride + (kernel - 1) * dilation + 1 - before - input,
                             0);
  }
  bool is_padded() const { return before > 0 || after() > 0; }
  bool step_by_one() const { return stride == 1 && dilation == 1 && before < kernel; }
  // Where they step by one, the windows that an element is in are a window as well, over them.
  Windows of_elements() const {
    return {.dim = dim,
            .kernel = kernel,
            .before = kernel - 1 - before,
            .input = count,
            .count = input};
  }
  // Each element is in one window at most, and none reaches beyond.
  bool are_apart() const {
    return kernel <= stride && dilation == 1 && before == 0 && count * stride <= input;
  }
  // As before, and every element is in one.
  bool cover() const { return are_apart() && kernel == stride && count * stride == input; }
};
// By the windowed dimensions, the first of them first.
using AllWindows = std::vector<Windows>;

// Elements of a window.
int64_t positions(const AllWindows& windows);
bool any_padded(const AllWindows& windows);

// Of a pooling of `input` to `output` along the last `dims`, whose kernel size is argument `first`,
// and behind it stride, padding and, where it has them, dilation. Nullopt where there is nothing to
// pool.
std::optional<AllWindows> windows_of(const Decomposition& d, size_t dims, size_t first,
                                     const TensorInfo& input, const TensorInfo& output,
                                     bool has_dilation);

// Of `few` to `many` elements by whole factors along the last dimensions; nullopt for others.
std::optional<AllWindows> whole_factors(const TensorInfo& few, const TensorInfo& many, size_t dims);

// The windows of elements, where a kernel can read them all.
std::optional<AllWindows> windows_of_elements(const AllWindows& windows, int64_t most);

// Dense, with the dimensions in memory in the order that `strides` has them.
std::vector<int64_t> dense_strides(c10::IntArrayRef sizes, c10::IntArrayRef strides);

// 0, 1, ... along a dimension of `rank`.
Term counted(Decomposition& d, int64_t count, size_t dim, size_t rank);

// ---- By shifted views ----

// `x` in a larger array of `fill`, as far as windows reach.
Term padded(Decomposition& d, Term x, const AllWindows& windows, const at::Scalar& fill);

// Of the padded input, the elements at one position of all windows.
class Positions {
 public:
  Positions(Term x, const AllWindows& windows);
  Term at(c10::IntArrayRef position) const;

 private:
  Term x_;
  const AllWindows& windows_;
  TensorInfo type_;
};

// Calls `visit` with each position in a window, the last dimension's fastest, as ATen adds.
template <class Visit>
void for_each_position(const AllWindows& windows, const Visit& visit) {
  std::vector<int64_t> position(windows.size(), 0);
  for (int64_t i = 0; i < positions(windows); ++i) {
    int64_t rest = i;
    for (size_t dim = windows.size(); dim-- > 0;) {
      position[dim] = rest % windows[dim].kernel;
      rest /= windows[dim].kernel;
    }
    visit(c10::IntArrayRef(position));
  }
}

// ---- Side by side ----

// Behind each window's dimension, where that of its elements is inserted.
std::vector<int64_t> inner_dims(const AllWindows& windows);

// The sum of each of the windows, which are apart.
Term sum_of_apart(Term x, const AllWindows& windows);

// Of a value for each window the result: each of its elements gets that of its window, and 0 where
// there is none. `x` may have the inner dimensions.
bool finish_apart(Decomposition& d, Term x, const AllWindows& windows);

}  // namespace torch_lazy::pooling
