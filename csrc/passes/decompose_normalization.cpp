// Layer, group and batch norm.

#include "passes/decompose_rules.h"
#include "passes/layout.h"

namespace torch_lazy {
namespace {

std::vector<int64_t> range(int64_t first, int64_t last) {
  std::vector<int64_t> dims;
  for (int64_t i = first; i < last; ++i) dims.push_back(i);
  return dims;
}

struct Normalized {
  Term centered;
  Term mean;  // all with the dimensions kept
  Term rstd;
  Term squares;  // their sum
};

Normalized normalize(Term x, c10::IntArrayRef dims, double eps) {
  const int64_t count = product(x.info().sizes, dims);
  const Term mean = sum(x, dims) / count;
  const Term centered = x - mean;
  const Term squares = sum(centered * centered, dims);
  return {centered, mean, rsqrt(squares / count + eps), squares};
}

// The gradient of `normalize`, given that of its result.
Term normalize_backward(Term grad, Term normalized, Term rstd, c10::IntArrayRef dims) {
  const int64_t count = product(grad.info().sizes, dims);
  const Term mean = sum(grad, dims) / count;
  const Term slope = sum(grad * normalized, dims) / count;
  return (grad - mean - normalized * slope) * rstd;
}

// ---- Layer norm ----

bool layer_norm(Decomposition& d) {
  const Term x = d.operand(0, d.compute());
  const int64_t rank = x.info().dims();
  const auto dims = range(rank - int64_t(d.integers(1).size()), rank);
  if (product(x.info().sizes, dims) == 0) return false;
  const Normalized normal = normalize(x, dims, d.real(4));
  Term result = normal.centered * normal.rstd;
  if (d.given(2)) result = result * d.operand(2, x.dtype());
  if (d.given(3)) result = result + d.operand(3, x.dtype());
  if (d.needed(1)) d.finish(normal.mean, 1);
  if (d.needed(2)) d.finish(normal.rstd, 2);
  return !d.needed(0) || d.finish(result);
}

bool layer_norm_backward(Decomposition& d) {
  const c10::ScalarType dtype = compute_dtype(d.tensor(1).dtype());
  const Term grad = d.operand(0, dtype), x = d.operand(1, dtype);
  const Term mean = d.operand(3, dtype), rstd = d.operand(4, dtype);
  const int64_t rank = x.info().dims();
  const int64_t first = rank - int64_t(d.integers(2).size());
  const auto inner = range(first, rank), outer = range(0, first);
  if (product(x.info().sizes, inner) == 0) return false;
  const Term normalized = (x - mean) * rstd;
  if (d.needed(0)) {
    const Term scaled = d.given(5) ? grad * d.operand(5, dtype) : grad;
    d.finish(normalize_backward(scaled, normalized, rstd, inner), 0);
  }
  if (d.needed(1)) d.finish(sum(grad * normalized, outer, false), 1);
  if (d.needed(2)) d.finish(outer.empty() ? grad : sum(grad, outer, false), 2);
  return true;
}

// ---- Group norm ----

// Channels are dimension 1; a group of them becomes a dimension after it.
struct Groups {
  std::vector<int64_t> sizes;
  int64_t groups, channels;  // channels of a group

  Groups(c10::IntArrayRef shape, int64_t count) : groups(count), channels(shape[1] / count) {
    sizes = {shape[0], groups, channels};
    sizes.insert(sizes.end(), shape.begin() + 2, shape.end());
  }
  std::vector<int64_t> reduced() const { return range(2, int64_t(sizes.size())); }

  Term split(Term x) const {
    std::vector<int64_t> strides = x.info().strides;
    strides.insert(strides.begin() + 1, strides[1] * channels);
    return view(x, sizes, strides);
  }
  // A value for each channel, or for each group of each sample.
  Term split_channels(Term x) const {
    std::vector<int64_t> shape(sizes.size(), 1), strides(sizes.size(), 0);
    const int64_t stride = x.info().strides[0];
    shape[1] = groups, strides[1] = stride * channels;
    shape[2] = channels, strides[2] = stride;
    return view(x, shape, strides);
  }
  Term split_groups(Term x) const {
    std::vector<int64_t> shape(sizes.size(), 1), strides(sizes.size(), 0);
    const TensorInfo info = x.info();
    for (const size_t i : {0, 1}) shape[i] = info.sizes[i], strides[i] = info.strides[i];
    return view(x, shape, strides);
  }
  Term join(Term x, c10::IntArrayRef shape) const {
    const std::vector<int64_t> split_strides = x.info().strides;
    std::vector<int64_t> strides = split_strides;
    strides.erase(strides.begin() + 1);
    return view(x, shape, strides);
  }
};

// In the memory of the split term, channels of one group must follow those of the one before.
bool joins(Term x, const Groups& groups) {
  const auto strides = x.info().strides;
  return groups.groups == 1 || strides[1] == strides[2] * groups.channels;
}

bool group_norm(Decomposition& d) {
  const TensorInfo type = d.output();
  if (type.dims() < 2 || type.elements() == 0) return false;
  const Groups groups(type.sizes, d.integer(6));
  const Term x = groups.split(d.tensor(0)).to(d.compute());
  const Normalized normal = normalize(x, groups.reduced(), d.real(7));
  Term result = normal.centered * normal.rstd;
  if (d.given(1)) result = result * groups.split_channels(d.tensor(1)).to(x.dtype());
  if (d.given(2)) result = result + groups.split_channels(d.tensor(2)).to(x.dtype());
  if (!joins(result, groups)) return false;
  if (d.needed(1)) d.finish(squeeze(normal.mean, groups.reduced()), 1);
  if (d.needed(2)) d.finish(squeeze(normal.rstd, groups.reduced()), 2);
  return !d.needed(0) || d.finish(groups.join(result, type.sizes));
}

bool group_norm_backward(Decomposition& d) {
  const TensorInfo type = d.tensor(1).info();
  if (type.dims() < 2 || type.elements() == 0) return false;
  const c10::ScalarType dtype = compute_dtype(type.dtype);
  const Groups groups(type.sizes, d.integer(8));
  const auto reduced = groups.reduced();
  const Term grad = groups.split(d.tensor(0)).to(dtype), x = groups.split(d.tensor(1)).to(dtype);
  const Term mean = groups.split_groups(d.tensor(2)).to(dtype);
  const Term rstd = groups.split_groups(d.tensor(3)).to(dtype);
  const Term normalized = (x - mean) * rstd;
  if (d.needed(0)) {
    Term scaled = grad;
    if (d.given(4)) scaled = grad * groups.split_channels(d.tensor(4)).to(dtype);
    const Term result = normalize_backward(scaled, normalized, rstd, reduced);
    if (!joins(result, groups)) return false;
    d.finish(groups.join(result, type.sizes), 0);
  }
  // Over all dimensions but the channels: [groups, channels], joined to one.
  std::vector<int64_t> others = range(3, int64_t(groups.sizes.size()));
  others.insert(others.begin(), 0);
  const std::vector<int64_t> channels{type.sizes[1]};
  if (d.needed(1)) d.finish(view(sum(grad * normalized, others, false), channels, {1}), 1);
  if (d.needed(2)) d.finish(view(sum(grad, others, false), channels, {1}), 2);
  return true;
}

// ---- Batch norm ----

// A value for each channel, dimension 1 of `rank`.
Term per_channel(Decomposition& d, size_t argument, int64_t rank, c10::ScalarType dtype) {
  std::vector<int64_t> positions = range(1, rank - 1);
  return unsqueeze(d.tensor(argument), positions).to(dtype);
}

std::vector<int64_t> all_but_channels(int64_t rank) {
  std::vector<int64_t> dims = range(2, rank);
  dims.insert(dims.begin(), 0);
  return dims;
}

// The statistics that are kept move towards those of the batch.
Term moved(Term kept, Term of_batch, Term momentum) {
  return momentum * of_batch + (1 - momentum) * kept;
}

// The arguments from `training` on are at `training_at`; with statistics that are kept, which come
// before it, there are two more results.
bool batch_norm_of_batch(Decomposition& d, size_t training_at, bool keeps) {
  const TensorInfo type = d.output();
  if (type.dims() < 2 || !d.boolean(training_at)) return false;
  const auto dims = all_but_channels(type.dims());
  const int64_t count = product(type.sizes, dims);
  if (count < 2) return false;  // has no variance
  const Term x = d.operand(0, d.compute());
  const auto [centered, mean, rstd, squares] = normalize(x, dims, d.real(training_at + 2));
  Term result = centered * rstd;
  if (d.given(1)) result = result * per_channel(d, 1, type.dims(), x.dtype());
  if (d.given(2)) result = result + per_channel(d, 2, type.dims(), x.dtype());
  if (d.needed(1)) d.finish(squeeze(mean, dims), 1);
  if (d.needed(2)) d.finish(squeeze(rstd, dims), 2);
  if (keeps) {
    const Term momentum = d.operand(training_at + 1, x.dtype());  // which may change each time
    const Term kept_mean = d.operand(3, x.dtype()), kept_variance = d.operand(4, x.dtype());
    if (d.needed(3)) d.finish(moved(kept_mean, squeeze(mean, dims), momentum), 3);
    if (d.needed(4))
      d.finish(moved(kept_variance, squeeze(squares, dims) / (count - 1), momentum), 4);
  }
  return !d.needed(0) || d.finish(result);
}

bool batch_norm_backward(Decomposition& d) {
  const TensorInfo type = d.tensor(1).info();
  if (type.dims() < 2 || type.elements() == 0) return false;
  const c10::ScalarType dtype = compute_dtype(type.dtype);
  const auto channel = [&](size_t argument) {
    return per_channel(d, argument, type.dims(), dtype);
  };
  const bool of_batch = d.boolean(7);
  if (!d.given(of_batch ? 5 : 3) || !d.given(of_batch ? 6 : 4)) return false;
  const Term grad = d.operand(0, dtype), x = d.operand(1, dtype);
  const Term mean = channel(of_batch ? 5 : 3);
  const Term rstd = of_batch ? channel(6) : rsqrt(channel(4) + d.real(8));
  const auto dims = all_but_channels(type.dims());
  const Term normalized = (x - mean) * rstd;
  const Term of_bias = sum(grad, dims), of_weight = sum(grad * normalized, dims);
  if (d.needed(1)) d.finish(squeeze(of_weight, dims), 1);
  if (d.needed(2)) d.finish(squeeze(of_bias, dims), 2);
  if (!d.needed(0)) return true;
  const int64_t count = product(type.sizes, dims);
  const Term scale = d.given(2) ? rstd * channel(2) : rstd;
  if (!of_batch) return d.finish(grad * scale);
  return d.finish((grad - of_bias / count - normalized * (of_weight / count)) * scale);
}

// As ATen: one factor and one constant a channel.
bool batch_norm(Decomposition& d, double eps) {
  const TensorInfo type = d.output();
  if (type.dims() < 2) return false;
  const Term x = d.operand(0, d.compute());
  const int64_t rank = type.dims();
  const Term mean = per_channel(d, 3, rank, x.dtype());
  Term factor = rsqrt(per_channel(d, 4, rank, x.dtype()) + eps);
  if (d.given(1)) factor = per_channel(d, 1, rank, x.dtype()) * factor;
  Term constant = -(mean * factor);
  if (d.given(2)) constant = per_channel(d, 2, rank, x.dtype()) - mean * factor;
  for (const size_t i : {1, 2})
    if (d.needed(i)) d.finish(d.full(0, d.output(i)), i);
  return !d.needed(0) || d.finish(x * factor + constant);
}

// Of the statistics saved for a backward pass there are none in inference.
bool saves_nothing(Decomposition& d) {
  for (const size_t i : {1, 2})
    if (d.needed(i) && d.output(i).elements() != 0) return false;
  return true;
}

}  // namespace

void add_normalization_rules(RuleTable& table) {
  table["native_layer_norm"] = layer_norm;
  table["native_layer_norm_backward"] = layer_norm_backward;
  table["native_group_norm"] = group_norm;
  table["native_group_norm_backward"] = group_norm_backward;
  table["native_batch_norm"] = [](Decomposition& d) {
    return !d.boolean(5) && d.given(3) && d.given(4) && saves_nothing(d) &&
           batch_norm(d, d.real(7));
  };
  table["_native_batch_norm_legit_functional"] = [](Decomposition& d) {
    return batch_norm_of_batch(d, 5, /*keeps=*/true);
  };
  table["_native_batch_norm_legit.no_stats"] = [](Decomposition& d) {
    return batch_norm_of_batch(d, 3, /*keeps=*/false);
  };
  table["native_batch_norm_backward"] = batch_norm_backward;
  table["_native_batch_norm_legit_no_training"] = [](Decomposition& d) {
    return saves_nothing(d) && batch_norm(d, d.real(6));
  };
}

}  // namespace torch_lazy
