// Losses and their gradients.

#include <array>

#include "passes/decompose_rules.h"

namespace torch_lazy {
namespace {

std::vector<int64_t> all_dims(const TensorInfo& info) {
  std::vector<int64_t> dims;
  for (int64_t i = 0; i < info.dims(); ++i) dims.push_back(i);
  return dims;
}

// `loss` has one value for each element; reduced as argument `reduction` says.
bool finish_loss(Decomposition& d, Term loss, size_t reduction) {
  const TensorInfo info = loss.info();
  if (d.is_mean(reduction)) return d.finish(sum(loss, all_dims(info), false) / info.elements());
  if (d.is_sum(reduction)) return d.finish(sum(loss, all_dims(info), false));
  return d.finish(loss);
}

// The share of each element in the reduced loss.
double share(Decomposition& d, const TensorInfo& info, size_t reduction) {
  return d.is_mean(reduction) ? 1.0 / double(info.elements()) : 1.0;
}

// ---- Distances ----

void add_distance_rules(RuleTable& table) {
  table["mse_loss"] = [](Decomposition& d) {
    const Term difference = d.common_operand(0) - d.common_operand(1);
    return finish_loss(d, difference * difference, 2);
  };
  table["mse_loss_backward"] = [](Decomposition& d) {
    const Term grad = d.operand(0, d.compute()), x = d.operand(1, d.compute());
    const double factor = 2 * share(d, x.info(), 3);
    return d.finish(factor * (x - d.operand(2, d.compute())) * grad);
  };
  table["smooth_l1_loss"] = [](Decomposition& d) {
    const double beta = d.real(3);
    const Term z = abs(d.common_operand(0) - d.common_operand(1));
    if (beta == 0) return finish_loss(d, z, 2);
    const Term near = compare("lt", z, beta);
    return finish_loss(d, where(near, 0.5 * z * z / beta, z - 0.5 * beta), 2);
  };
  table["smooth_l1_loss_backward"] = [](Decomposition& d) {
    const Term grad = d.operand(0, d.compute()), x = d.operand(1, d.compute());
    const Term difference = x - d.operand(2, d.compute());
    const double norm = share(d, x.info(), 3), beta = d.real(4);
    const Term inner = norm * difference * grad / beta;
    const Term upper = where(compare("ge", difference, beta), norm * grad, inner);
    return d.finish(where(compare("le", difference, -beta), -norm * grad, upper));
  };
  table["huber_loss"] = [](Decomposition& d) {
    const double delta = d.real(3);
    const Term z = abs(d.common_operand(0) - d.common_operand(1));
    const Term near = compare("le", z, delta);
    return finish_loss(d, where(near, 0.5 * z * z, delta * (z - 0.5 * delta)), 2);
  };
  table["huber_loss_backward"] = [](Decomposition& d) {
    const Term grad = d.operand(0, d.compute()), x = d.operand(1, d.compute());
    const Term difference = x - d.operand(2, d.compute());
    const double norm = share(d, x.info(), 3), delta = d.real(4);
    const Term upper =
        where(compare("ge", difference, delta), norm * grad * delta, norm * difference * grad);
    return d.finish(where(compare("le", difference, -delta), -norm * grad * delta, upper));
  };
}

// ---- Binary cross entropy ----

Term log_sigmoid(Term x) {
  return minimum(x, x.number(0)) - log1p(exp(-abs(x)));
}

void add_binary_rules(RuleTable& table) {
  table["binary_cross_entropy_backward"] = [](Decomposition& d) {
    const Term grad = d.operand(0, d.compute()), x = d.operand(1, d.compute());
    const Term target = d.operand(2, d.compute());
    const Term slope = maximum((1 - x) * x, x.number(1e-12));
    Term result = grad * (x - target) / slope;
    if (d.given(3)) result = result * d.operand(3, d.compute());
    if (d.is_mean(4)) result = result / x.info().elements();
    return d.finish(result);
  };
  table["binary_cross_entropy_with_logits"] = [](Decomposition& d) {
    // Made of several kernels in eager, each of which rounds.
    if (d.compute() != d.output().dtype) return false;
    const Term x = d.operand(0, d.compute()), target = d.operand(1, d.compute());
    Term positive = log_sigmoid(x);
    if (d.given(3)) positive = positive * ((d.operand(3, d.compute()) - 1) * target + 1);
    Term loss = (1 - target) * x - positive;
    if (d.given(2)) loss = loss * d.operand(2, d.compute());
    return finish_loss(d, loss, 4);
  };
  // Eager composes these of operators that round one by one: in half precision exp overflows.
  table["soft_margin_loss"] = [](Decomposition& d) {
    const c10::ScalarType dtype = d.output().dtype;
    const Term x = d.operand(0, dtype), target = d.operand(1, dtype);
    return finish_loss(d, log1p(exp(-target * x)).to(d.compute()), 2);
  };
  table["soft_margin_loss_backward"] = [](Decomposition& d) {
    const c10::ScalarType dtype = d.output().dtype;
    const Term grad = d.operand(0, dtype), x = d.operand(1, dtype);
    const Term target = d.operand(2, dtype);
    const Term z = exp(-target * x);
    return d.finish(target * z * -share(d, x.info(), 3) / (z + 1) * grad);
  };
}

// ---- Negative log likelihood ----

// Scores of classes: of one sample, or with the samples first and what else there is behind.
struct Classes {
  std::vector<int64_t> sizes;  // of the scores
  int64_t at, count;           // the dimension of classes

  explicit Classes(const TensorInfo& scores)
      : sizes(scores.sizes), at(scores.dims() == 1 ? 0 : 1), count(sizes[size_t(at)]) {}

  // Of a value for each sample. In one dimension it may have a dimension of its own or none.
  Term with_class_dim(Term x) const {
    return sizes.size() == 1 || x.info().dims() == 0 ? x : unsqueeze(x, {at});
  }
  // Of a value for each class.
  Term per_class(Term x) const {
    std::vector<int64_t> positions;
    for (int64_t i = at + 1; i < int64_t(sizes.size()); ++i) positions.push_back(i - at);
    return positions.empty() ? x : unsqueeze(x, positions);
  }
};

// The score, or whatever each class has, at the indices. Fails where one is no class.
Term pick(Decomposition& d, Term of_classes, const Classes& classes, Term index) {
  GraphBuilder& builder = d.builder();
  TensorInfo info = index.info();
  info.dtype = of_classes.dtype();
  return {&builder, builder.call("aten::gather", "",
                                 {builder.expand(of_classes.value, classes.sizes),
                                  builder.integer(classes.at), index.value, builder.boolean(false)},
                                 info)};
}

// Whether kernels there look at indices as they run. Elsewhere the host would have to wait for the
// targets to look at them, where an operator of the device's own may not.
bool checks_indices_in_kernels(c10::Device device) {
  return device.is_cpu() || device.is_cuda();
}

bool nll_loss(Decomposition& d) {
  const TensorInfo type = d.tensor(0).info();
  if (!checks_indices_in_kernels(type.device)) return false;
  const c10::ScalarType dtype = type.dtype;
  // ATen sums halves in their own dtype.
  if (type.dims() == 0 || type.elements() == 0 || compute_dtype(dtype) != dtype) return false;
  if (d.tensor(1).dtype() != c10::kLong) return false;
  const Classes classes(type);
  // What eager refuses, the operator says.
  std::vector<int64_t> of_samples = type.sizes;
  of_samples.erase(of_samples.begin() + classes.at);
  if (d.tensor(1).info().sizes != of_samples) return false;
  if (d.given(2)) {
    const TensorInfo weights = d.tensor(2).info();
    if (weights.dtype != dtype || weights.sizes != std::vector<int64_t>{classes.count})
      return false;
  }
  Term target = classes.with_class_dim(d.tensor(1));
  if (target.info().dims() == 0) target = unsqueeze(target, {0});
  const Term counts = compare("ne", target, d.integer(4));
  const Term index = where(counts, target, target.number(0));
  if (index.info().strides != contiguous_strides(index.info().sizes)) return false;
  Term weight = d.full(1, {dtype, type.device, index.info().sizes, index.info().strides});
  if (d.given(2)) weight = pick(d, classes.per_class(d.tensor(2)), classes, index);
  weight = where(counts, weight, weight.number(0));
  const std::vector<int64_t> all = all_dims(type);
  const bool reduced = d.is_mean(3) || d.is_sum(3);
  // Before the scores are looked at: gradients need it, and share a kernel with what made the
  // scores if they need nothing that comes of them.
  const bool has_total = reduced || type.dims() == 1;
  const Term total = has_total ? sum(weight, all, false) : d.full(0, d.output(1));
  const Term picked = pick(d, d.tensor(0), classes, index);
  const Term loss = where(counts, -(weight * picked), picked.number(0));
  if (d.needed(1)) d.finish(total, 1);
  if (!d.needed(0)) return true;
  if (!reduced) return d.finish(squeeze(loss, std::array{classes.at}));
  const Term whole = sum(loss, all, false);
  return d.finish(d.is_mean(3) ? whole / total : whole);
}

// Instead of a scatter: where a class is the target, so that it fuses with what reads it.
bool nll_loss_backward(Decomposition& d) {
  const TensorInfo type = d.output();
  if (type.dims() == 0 || type.elements() == 0) return false;
  const Classes classes(type);
  const c10::ScalarType dtype = d.compute();
  const Term target = classes.with_class_dim(d.operand(2, c10::kLong));
  Term grad = classes.with_class_dim(d.tensor(0)).to(dtype);
  if (d.is_mean(4)) grad = grad / d.operand(6, dtype);
  Term picked = -grad;
  if (d.given(3)) picked = -(classes.per_class(d.tensor(3)).to(dtype) * grad);
  const Term chosen = logical_and(compare("eq", classes.per_class(d.iota(classes.count)), target),
                                  compare("ne", target, d.integer(5)));
  return d.finish(where(chosen, picked, grad.number(0)));
}

}  // namespace

void add_loss_rules(RuleTable& table) {
  add_distance_rules(table);
  add_binary_rules(table);
  table["nll_loss_forward"] = nll_loss;
  table["nll_loss2d_forward"] = nll_loss;
  table["nll_loss_backward"] = nll_loss_backward;
  table["nll_loss2d_backward"] = nll_loss_backward;
}

}  // namespace torch_lazy
