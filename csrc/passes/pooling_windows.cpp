#include "passes/pooling_windows.h"

#include <algorithm>

#include "passes/layout.h"

namespace torch_lazy::pooling {
namespace {

// Sizes and strides of what has `type`, with each window's dimension as two: windows, and elements
// of each.
struct Apart {
  std::vector<int64_t> sizes, strides;

  Apart(const TensorInfo& type, const AllWindows& windows) {
    auto along = windows.begin();
    for (size_t dim = 0; dim < type.sizes.size(); ++dim) {
      const bool windowed = along != windows.end() && along->dim == dim;
      sizes.push_back(windowed ? along->count : type.sizes[dim]);
      strides.push_back(type.strides[dim] * (windowed ? along->stride : 1));
      if (!windowed) continue;
      sizes.push_back(along->kernel);
      strides.push_back(type.strides[dim]);
      ++along;
    }
  }
};

}  // namespace

int64_t positions(const AllWindows& windows) {
  int64_t count = 1;
  for (const Windows& along : windows) count *= along.kernel;
  return count;
}

bool any_padded(const AllWindows& windows) {
  return std::ranges::any_of(windows, &Windows::is_padded);
}

std::optional<AllWindows> windows_of(const Decomposition& d, size_t dims, size_t first,
                                     const TensorInfo& input, const TensorInfo& output,
                                     bool has_dilation) {
  if (input.elements() == 0 || output.elements() == 0) return std::nullopt;
  const std::vector<int64_t> kernel = d.integers(first);
  std::vector<int64_t> stride = d.integers(first + 1);
  if (stride.empty()) stride = kernel;
  const std::vector<int64_t> before = d.integers(first + 2);
  const std::vector<int64_t> dilation =
      has_dilation ? d.integers(first + 3) : std::vector<int64_t>{1};
  const size_t first_dim = input.sizes.size() - dims;
  const auto at = [](const std::vector<int64_t>& values, size_t i) {
    return values.size() == 1 ? values[0] : values.at(i);
  };
  AllWindows windows;
  for (size_t i = 0; i < dims; ++i) {
    const size_t dim = first_dim + i;
    windows.push_back({.dim = dim,
                       .kernel = at(kernel, i),
                       .stride = at(stride, i),
                       .before = at(before, i),
                       .dilation = at(dilation, i),
                       .input = input.sizes[dim],
                       .count = output.sizes[dim]});
  }
  return windows;
}

std::optional<AllWindows> whole_factors(const TensorInfo& few, const TensorInfo& many,
                                        size_t dims) {
  if (few.elements() == 0 || many.elements() == 0) return std::nullopt;
  AllWindows windows;
  for (size_t dim = few.sizes.size() - dims; dim < few.sizes.size(); ++dim) {
    const int64_t factor = many.sizes[dim] / few.sizes[dim];
    if (factor * few.sizes[dim] != many.sizes[dim]) return std::nullopt;
    windows.push_back({.dim = dim,
                       .kernel = factor,
                       .stride = factor,
                       .input = many.sizes[dim],
                       .count = few.sizes[dim]});
  }
  return windows;
}

std::optional<AllWindows> windows_of_elements(const AllWindows& windows, int64_t most) {
  if (positions(windows) > most || !std::ranges::all_of(windows, &Windows::step_by_one))
    return std::nullopt;
  AllWindows result;
  for (const Windows& along : windows) result.push_back(along.of_elements());
  return result;
}

std::vector<int64_t> dense_strides(c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  const Layout like{{sizes.begin(), sizes.end()}, {strides.begin(), strides.end()}};
  const Layout dense = dense_layout(like);
  return {dense.strides.begin(), dense.strides.end()};
}

Term counted(Decomposition& d, int64_t count, size_t dim, size_t rank) {
  std::vector<int64_t> behind;
  for (size_t i = dim + 1; i < rank; ++i) behind.push_back(int64_t(i - dim));
  return unsqueeze(d.iota(count), behind);
}

Term padded(Decomposition& d, Term x, const AllWindows& windows, const at::Scalar& fill) {
  if (!any_padded(windows)) return x;
  const TensorInfo input = x.info();
  TensorInfo type = input;
  for (const Windows& along : windows) type.sizes[along.dim] += along.before + along.after();
  type.strides = dense_strides(type.sizes, input.strides);
  int64_t offset = 0;
  for (const Windows& along : windows) offset += along.before * type.strides[along.dim];
  return scatter_view(d.full(fill, type), x, input.sizes, type.strides, offset);
}

Positions::Positions(Term x, const AllWindows& windows)
    : x_(x), windows_(windows), type_(x.info()) {
  for (const Windows& along : windows) {
    type_.sizes[along.dim] = along.count;
    type_.strides[along.dim] *= along.stride;
  }
}

Term Positions::at(c10::IntArrayRef position) const {
  const TensorInfo input = x_.info();
  int64_t offset = 0;
  for (size_t i = 0; i < windows_.size(); ++i)
    offset += position[i] * windows_[i].dilation * input.strides[windows_[i].dim];
  return view(x_, type_.sizes, type_.strides, offset);
}

std::vector<int64_t> inner_dims(const AllWindows& windows) {
  std::vector<int64_t> dims;
  for (size_t i = 0; i < windows.size(); ++i) dims.push_back(int64_t(windows[i].dim + i + 1));
  return dims;
}

Term sum_of_apart(Term x, const AllWindows& windows) {
  const Apart apart(x.info(), windows);
  return sum(view(x, apart.sizes, apart.strides), inner_dims(windows), false);
}

bool finish_apart(Decomposition& d, Term x, const AllWindows& windows) {
  GraphBuilder& builder = d.builder();
  const TensorInfo output = d.output();
  const Apart apart(output, windows);
  const bool covers = std::ranges::all_of(windows, &Windows::cover);
  const Term spread{&builder, builder.expand(x.to(output.dtype).value, apart.sizes)};
  if (covers && is_dense(output.sizes, output.strides)) {
    TensorInfo type = output;
    type.sizes = apart.sizes;
    type.strides = apart.strides;
    const Term laid_out{&builder, builder.clone(spread.value, type)};
    return d.finish(view(laid_out, output.sizes, output.strides));
  }
  return d.finish(scatter_view(d.full(0, output), spread, apart.sizes, apart.strides, 0));
}

}  // namespace torch_lazy::pooling
