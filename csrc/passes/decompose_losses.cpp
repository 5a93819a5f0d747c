// Losses and their gradients. Operators that raise for a target out of range stay whole; their
// gradients cannot fail.

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
    const Term difference = d.operand(0, d.compute()) - d.operand(1, d.compute());
    return finish_loss(d, difference * difference, 2);
  };
  table["mse_loss_backward"] = [](Decomposition& d) {
    const Term grad = d.operand(0, d.compute()), x = d.operand(1, d.compute());
    const double factor = 2 * share(d, x.info(), 3);
    return d.finish(factor * (x - d.operand(2, d.compute())) * grad);
  };
  table["smooth_l1_loss"] = [](Decomposition& d) {
    const double beta = d.real(3);
    const Term z = abs(d.operand(0, d.compute()) - d.operand(1, d.compute()));
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
    const Term z = abs(d.operand(0, d.compute()) - d.operand(1, d.compute()));
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

// Instead of a scatter: where a class is the target, so that it fuses with what reads it.
bool nll_loss_backward(Decomposition& d) {
  const TensorInfo type = d.output();
  const int64_t rank = type.dims();
  if (rank == 0 || type.elements() == 0) return false;
  const int64_t classes_at = rank == 1 ? 0 : 1;
  const int64_t classes = type.sizes[size_t(classes_at)];
  // What stands after the dimension of classes.
  const std::vector<int64_t> trailing(size_t(rank - 1 - classes_at), 1);

  const auto with_class_dim = [&](Term x) {
    // In one dimension the target may have a dimension of its own or none.
    if (rank == 1 || x.info().dims() == 0) return x;
    return unsqueeze(x, {classes_at});
  };
  const auto per_class = [&](Term x) {
    std::vector<int64_t> positions;
    for (size_t i = 0; i < trailing.size(); ++i) positions.push_back(int64_t(i) + 1);
    return positions.empty() ? x : unsqueeze(x, positions);
  };

  const c10::ScalarType dtype = d.compute();
  const Term target = with_class_dim(d.operand(2, c10::kLong));
  Term grad = with_class_dim(d.tensor(0)).to(dtype);
  if (d.is_mean(4)) grad = grad / d.operand(6, dtype);
  Term picked = -grad;
  if (d.given(3)) picked = -(per_class(d.tensor(3)).to(dtype) * grad);
  const Term chosen = logical_and(compare("eq", per_class(d.iota(classes)), target),
                                  compare("ne", target, d.integer(5)));
  return d.finish(where(chosen, picked, grad.number(0)));
}

}  // namespace

void add_loss_rules(RuleTable& table) {
  add_distance_rules(table);
  add_binary_rules(table);
  table["nll_loss_backward"] = nll_loss_backward;
  table["nll_loss2d_backward"] = nll_loss_backward;
}

}  // namespace torch_lazy
