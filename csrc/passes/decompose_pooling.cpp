// Pooling over windows of the last dimensions, and enlarging by whole factors: shifted views of the
// input, combined point by point.

#include <c10/util/hash.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "passes/decompose_rules.h"
#include "passes/layout.h"

namespace torch_lazy {
namespace {

// A kernel reads as many shifted views for each of its results.
constexpr int64_t kMostPositions = 32;
// Where an index is sought or compared too, more than these are several kernels (kMostGroupNodes):
// faster than ATen's only where that goes element by element.
constexpr int64_t kMostPositionsWithIndices = 18;
// The greatest of more than these is sought along one dimension after the other, which reads fewer
// and writes what is between.
constexpr int64_t kMostAtOnce = 16;
// On the node whose result says where in the input each window has its greatest element, the
// fingerprint of the windows: their gradient then finds its places by comparing, where ATen has to
// look for indices out of range. Of use within this pass only.
const c10::Symbol kWindowIndicesAttribute = c10::Symbol::attr("window_indices");

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
using AllWindows = std::vector<Windows>;

int64_t positions(const AllWindows& windows) {
  int64_t count = 1;
  for (const Windows& along : windows) count *= along.kernel;
  return count;
}

// ATen's kernels on the CPU use vectors only where a dimension without windows is innermost.
int64_t most_with_indices(const TensorInfo& input) {
  return input.strides.back() == 1 ? kMostPositions : kMostPositionsWithIndices;
}

int64_t fingerprint(const AllWindows& windows) {
  size_t hash = 0;
  for (const Windows& along : windows)
    hash =
        c10::hash_combine(hash, c10::get_hash(along.dim, along.kernel, along.stride, along.before,
                                              along.dilation, along.input, along.count));
  return int64_t(hash);
}

bool are_indices_of(Term indices, const AllWindows& windows) {
  const torch::jit::Node* const node = indices.value->node();
  return node->hasAttribute(kWindowIndicesAttribute) &&
         node->i(kWindowIndicesAttribute) == fingerprint(windows);
}

// The windows of elements, where a kernel can read them all.
std::optional<AllWindows> windows_of_elements(const AllWindows& windows, int64_t most) {
  if (positions(windows) > most || !std::ranges::all_of(windows, &Windows::step_by_one))
    return std::nullopt;
  AllWindows result;
  for (const Windows& along : windows) result.push_back(along.of_elements());
  return result;
}

bool any_padded(const AllWindows& windows) {
  return std::ranges::any_of(windows, &Windows::is_padded);
}

// Of a pooling of `input` to `output` along the last `dims`, whose kernel size is argument `first`,
// and behind it stride, padding and, where it has them, dilation. Nullopt where there is nothing to
// pool.
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

// Dense, with the dimensions in memory in the order that `strides` has them.
std::vector<int64_t> dense_strides(c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  const Layout like{{sizes.begin(), sizes.end()}, {strides.begin(), strides.end()}};
  const Layout dense = dense_layout(like);
  return {dense.strides.begin(), dense.strides.end()};
}

// `x` in a larger array of `fill`, as far as windows reach.
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

// Of the padded input, the elements at one position of all windows.
class Positions {
 public:
  Positions(Term x, const AllWindows& windows) : x_(x), windows_(windows), type_(x.info()) {
    for (const Windows& along : windows) {
      type_.sizes[along.dim] = along.count;
      type_.strides[along.dim] *= along.stride;
    }
  }

  Term at(c10::IntArrayRef position) const {
    const TensorInfo input = x_.info();
    int64_t offset = 0;
    for (size_t i = 0; i < windows_.size(); ++i)
      offset += position[i] * windows_[i].dilation * input.strides[windows_[i].dim];
    return view(x_, type_.sizes, type_.strides, offset);
  }

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

// 0, 1, ... along a dimension of `rank`.
Term counted(Decomposition& d, int64_t count, size_t dim, size_t rank) {
  std::vector<int64_t> behind;
  for (size_t i = dim + 1; i < rank; ++i) behind.push_back(int64_t(i - dim));
  return unsqueeze(d.iota(count), behind);
}

// ---- Windows side by side ----

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

// Behind each window's dimension, the positions in the result of Apart.
std::vector<int64_t> inner_dims(const AllWindows& windows) {
  std::vector<int64_t> dims;
  for (size_t i = 0; i < windows.size(); ++i) dims.push_back(int64_t(windows[i].dim + i + 1));
  return dims;
}

// Of a value for each window the result: each of its elements gets that of its window, and 0 where
// there is none. `x` may have the inner dimensions of Apart.
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

// ---- The greatest ----

Term greatest(Term x, const AllWindows& windows) {
  if (positions(windows) > kMostAtOnce && windows.size() > 1) {
    for (size_t i = windows.size(); i-- > 0;) {
      const std::vector<int64_t> strides = x.info().strides;
      x = greatest(x, {windows[i]});
      if (windows[i].kernel == 1) continue;  // a view, which has the strides of what it shows
      TensorInfo type = x.info();
      type.strides = dense_strides(type.sizes, strides);
      x.value->setType(type.type());
    }
    return x;
  }
  const Positions views(x, windows);
  std::optional<Term> result;
  for_each_position(windows, [&](c10::IntArrayRef position) {
    const Term value = views.at(position);
    result = result ? maximum(*result, value) : value;
  });
  return *result;
}

// As ATen goes through a window: the first of equal ones counts, and the last NaN.
bool greatest_with_indices(Decomposition& d, Term x, const AllWindows& windows,
                           c10::IntArrayRef input_sizes) {
  GraphBuilder& builder = d.builder();
  const size_t rank = input_sizes.size();
  const auto integer = [&](int64_t value) {
    return Term{&builder, builder.number(value, c10::kInt)};
  };
  // Where windows begin, and how far behind it their first element is that exists.
  std::optional<Term> begin, first;
  int64_t elements = 1;  // of the dimensions behind
  std::vector<int64_t> strides(windows.size());
  for (size_t i = windows.size(); i-- > 0;) {
    const Windows& along = windows[i];
    strides[i] = elements;
    const Term start = counted(d, along.count, along.dim, rank) * along.stride - along.before;
    begin = begin ? *begin + start * elements : start * elements;
    if (along.before > 0) {
      const Term missing = maximum(start.number(0), -start) * elements;
      first = first ? *first + missing : missing;
    }
    elements *= along.input;
  }
  if (elements > std::numeric_limits<int32_t>::max()) return false;
  const Positions views(x, windows);
  std::optional<Term> best;
  Term offset = first ? first->to(c10::kInt) : integer(0);
  for_each_position(windows, [&](c10::IntArrayRef position) {
    const Term value = views.at(position);
    if (!best) {
      best = value;
      return;
    }
    int64_t distance = 0;
    for (size_t i = 0; i < windows.size(); ++i)
      distance += position[i] * windows[i].dilation * strides[i];
    const Term better = logical_or(compare("gt", value, *best), test("isnan", value));
    best = where(better, value, *best);
    offset = where(better, integer(distance), offset);
  });
  if (d.needed(0)) d.finish(*best, 0);
  d.finish(*begin + offset.to(c10::kLong), 1);
  d.finished().back().second->node()->i_(kWindowIndicesAttribute, fingerprint(windows));
  return true;
}

bool max_pool(Decomposition& d, size_t dims) {
  const Term x = d.tensor(0);
  if (!c10::isFloatingType(x.dtype())) return false;
  const auto windows = windows_of(d, dims, 1, x.info(), d.output(), true);
  if (!windows) return false;
  const bool padded_and_dilated = std::ranges::any_of(
      *windows, [](const Windows& along) { return along.dilation > 1 && along.is_padded(); });
  const bool with_indices = d.node()->outputs().size() > 1 && d.needed(1);
  for (const Windows& along : *windows)
    if (along.kernel > kMostPositions) return false;
  if (with_indices && (positions(*windows) > most_with_indices(x.info()) || padded_and_dilated))
    return false;
  const Term comparable =
      padded(d, x.to(compute_dtype(x.dtype())), *windows, -std::numeric_limits<double>::infinity());
  if (with_indices) return greatest_with_indices(d, comparable, *windows, x.info().sizes);
  return d.finish(greatest(comparable, *windows));
}

// The index that each element has among those of windows. Each windowed dimension is `parts` of the
// loops' dimensions: windows, and elements of each.
Term own_index(Decomposition& d, const AllWindows& windows, size_t rank, size_t parts) {
  std::optional<Term> own;
  int64_t elements = 1;
  for (size_t i = windows.size(); i-- > 0;) {
    const Windows& along = windows[i];
    const size_t dim = along.dim + (parts - 1) * i;
    const Term index = parts == 1 ? counted(d, along.input, dim, rank)
                                  : counted(d, along.count, dim, rank) * along.stride +
                                        counted(d, along.kernel, dim + 1, rank);
    own = own ? *own + index * elements : index * elements;
    elements *= along.input;
  }
  return *own;
}

bool max_pool_backward(Decomposition& d, size_t dims) {
  const Term grad = d.tensor(0), indices = d.tensor(7);
  const auto windows = windows_of(d, dims, 2, d.output(), grad.info(), true);
  if (!windows || !are_indices_of(indices, *windows)) return false;
  const size_t rank = d.output().sizes.size();
  if (std::ranges::all_of(*windows, &Windows::cover)) {
    const std::vector<int64_t> inner = inner_dims(*windows);
    const Term of_window = unsqueeze(grad, inner);
    const Term own = own_index(d, *windows, rank + dims, 2);
    const Term is_greatest = compare("eq", unsqueeze(indices, inner), own);
    return finish_apart(d, where(is_greatest, of_window, of_window.number(0)), *windows);
  }
  const auto of_elements = windows_of_elements(*windows, most_with_indices(grad.info()));
  if (!of_elements) return false;
  const Term own = own_index(d, *windows, rank, 1);
  const Term all_grads = padded(d, grad.to(d.compute()), *of_elements, 0);
  const Term all_indices = padded(d, indices, *of_elements, -1);
  const Positions grads(all_grads, *of_elements), greatest(all_indices, *of_elements);
  std::optional<Term> total;
  for_each_position(*of_elements, [&](c10::IntArrayRef position) {
    const Term value = grads.at(position);
    const Term part = where(compare("eq", greatest.at(position), own), value, value.number(0));
    total = total ? *total + part : part;
  });
  return d.finish(*total);
}

// ---- The mean ----

struct Mean {
  AllWindows windows;
  std::optional<Term> count;  // of the elements of each window, where they differ
  double divisor = 1;         // where they do not
};

// Of an average pooling along the last `dims` whose kernel size is argument `first`.
std::optional<Mean> mean_of(Decomposition& d, size_t dims, size_t first, const TensorInfo& input,
                            const TensorInfo& output) {
  auto windows = windows_of(d, dims, first, input, output, false);
  if (!windows) return std::nullopt;
  Mean mean{.windows = *std::move(windows), .count = std::nullopt};
  const bool counts_padding = d.boolean(first + 4);
  if (d.given(first + 5)) {
    mean.divisor = double(d.integer(first + 5));
    return mean;
  }
  mean.divisor = double(positions(mean.windows));
  for (const Windows& along : mean.windows) {
    // What is beyond the padding never counts.
    const int64_t padding = counts_padding ? along.before : 0;
    if (along.after() <= padding && (counts_padding || along.before == 0)) continue;
    const Term start =
        counted(d, along.count, along.dim, input.sizes.size()) * along.stride - along.before;
    const Term end = minimum(start + along.kernel, start.number(along.input + padding));
    const Term size = end - maximum(start, start.number(-padding));
    mean.divisor /= double(along.kernel);
    mean.count = mean.count ? *mean.count * size : size;
  }
  return mean;
}

Term divided(Term x, const Mean& mean) {
  if (!mean.count) return x / mean.divisor;
  return x / (*mean.count * mean.count->number(int64_t(mean.divisor))).to(x.dtype());
}

// From 0 on, so that a sum is never -0.
Term sum_of_positions(Term x, const AllWindows& windows) {
  const Positions views(x, windows);
  std::optional<Term> total;
  for_each_position(windows, [&](c10::IntArrayRef position) {
    const Term value = views.at(position);
    total = total ? *total + value : value + 0;
  });
  return *total;
}

Term sum_of_apart(Term x, const AllWindows& windows) {
  const Apart apart(x.info(), windows);
  return sum(view(x, apart.sizes, apart.strides), inner_dims(windows), false);
}

bool finish_mean(Decomposition& d, const Mean& mean) {
  const Term x = d.operand(0, d.compute());
  if (!c10::isFloatingType(x.dtype())) return false;
  if (positions(mean.windows) <= kMostPositions)
    return d.finish(divided(sum_of_positions(padded(d, x, mean.windows, 0), mean.windows), mean));
  if (!std::ranges::all_of(mean.windows, &Windows::are_apart)) return false;
  return d.finish(divided(sum_of_apart(x, mean.windows), mean));
}

bool finish_mean_backward(Decomposition& d, const Mean& mean) {
  if (!c10::isFloatingType(d.compute())) return false;
  const Term grad = divided(d.operand(0, d.compute()), mean);
  if (std::ranges::all_of(mean.windows, &Windows::are_apart))
    return finish_apart(d, unsqueeze(grad, inner_dims(mean.windows)), mean.windows);
  const auto of_elements = windows_of_elements(mean.windows, kMostPositions);
  return of_elements && d.finish(sum_of_positions(padded(d, grad, *of_elements, 0), *of_elements));
}

bool average_pool(Decomposition& d, size_t dims) {
  const auto mean = mean_of(d, dims, 1, d.tensor(0).info(), d.output());
  return mean && finish_mean(d, *mean);
}

bool average_pool_backward(Decomposition& d, size_t dims) {
  const auto mean = mean_of(d, dims, 2, d.output(), d.tensor(0).info());
  return mean && finish_mean_backward(d, *mean);
}

// Of `few` to `many` elements by whole factors along the last dimensions; nullopt for others.
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

std::optional<Mean> adaptive_mean(const TensorInfo& output, const TensorInfo& input, size_t dims) {
  auto windows = whole_factors(output, input, dims);
  if (!windows) return std::nullopt;
  const auto divisor = double(positions(*windows));
  return Mean{.windows = *std::move(windows), .count = std::nullopt, .divisor = divisor};
}

bool adaptive_average_pool(Decomposition& d, size_t dims) {
  const auto mean = adaptive_mean(d.output(), d.tensor(0).info(), dims);
  return mean && finish_mean(d, *mean);
}

bool adaptive_average_pool_backward(Decomposition& d, size_t dims) {
  const auto mean = adaptive_mean(d.tensor(0).info(), d.output(), dims);
  return mean && finish_mean_backward(d, *mean);
}

// ---- Enlarging ----

// Whether ATen finds the nearest by the factors: it multiplies by a float, which may round to
// another element. It is asked at both ends of what each element becomes. `exact`: it looks from
// the middle of an element.
bool enlarges(const Decomposition& d, const AllWindows& windows, size_t first_scale, bool exact) {
  for (size_t i = 0; i < windows.size(); ++i) {
    const Windows& along = windows[i];
    const double given = d.given(first_scale + i) ? d.real(first_scale + i) : 0;
    const float scale = given > 0 ? static_cast<float>(1.0 / given)
                                  : static_cast<float>(along.count) / float(along.input);
    for (int64_t of = 0; of < along.count; ++of)
      for (const int64_t to : {of * along.kernel, (of + 1) * along.kernel - 1}) {
        const float from = exact ? (float(to) + 0.5F) * scale : float(to) * scale;
        if (std::min(int64_t(std::floor(from)), along.count - 1) != of) return false;
      }
  }
  return true;
}

Rule enlarge(size_t dims, bool exact) {
  return [=](Decomposition& d) {
    const auto windows = whole_factors(d.tensor(0).info(), d.output(), dims);
    if (!windows || !enlarges(d, *windows, 2, exact)) return false;
    return finish_apart(d, unsqueeze(d.tensor(0), inner_dims(*windows)), *windows);
  };
}

Rule enlarge_backward(size_t dims, bool exact) {
  return [=](Decomposition& d) {
    const Term grad = d.operand(0, d.compute());
    const auto windows = whole_factors(d.output(), grad.info(), dims);
    if (!windows || !c10::isFloatingType(grad.dtype()) || !enlarges(d, *windows, 3, exact))
      return false;
    return d.finish(sum_of_apart(grad, *windows));
  };
}

}  // namespace

void add_pooling_rules(RuleTable& table) {
  table["max_pool1d"] = [](Decomposition& d) { return max_pool(d, 1); };
  for (const size_t dims : {2, 3}) {
    const std::string suffix = std::to_string(dims) + "d";
    const auto along = [dims](bool (*rule)(Decomposition&, size_t)) -> Rule {
      return [=](Decomposition& d) { return rule(d, dims); };
    };
    table["max_pool" + suffix + "_with_indices"] = along(max_pool);
    table["max_pool" + suffix + "_with_indices_backward"] = along(max_pool_backward);
    table["avg_pool" + suffix] = along(average_pool);
    table["avg_pool" + suffix + "_backward"] = along(average_pool_backward);
    table["_adaptive_avg_pool" + suffix] = along(adaptive_average_pool);
    table["_adaptive_avg_pool" + suffix + "_backward"] = along(adaptive_average_pool_backward);
  }
  for (const size_t dims : {1, 2, 3})
    for (const bool exact : {false, true}) {
      const std::string name =
          (exact ? "_upsample_nearest_exact" : "upsample_nearest") + std::to_string(dims) + "d";
      table[name] = enlarge(dims, exact);
      table[name + "_backward"] = enlarge_backward(dims, exact);
    }
}

}  // namespace torch_lazy
