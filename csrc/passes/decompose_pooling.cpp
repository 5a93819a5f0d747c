// Pooling over windows of the last dimensions: shifted views of the input, combined point by point.

#include <c10/util/hash.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "passes/pooling_windows.h"

namespace torch_lazy {
namespace {

using namespace pooling;

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
}

}  // namespace torch_lazy
