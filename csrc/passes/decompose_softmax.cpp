// Softmax, its logarithm, and their gradients.

#include <limits>

#include "passes/decompose_rules.h"

namespace torch_lazy {
namespace {

std::vector<int64_t> softmax_dims(Decomposition& d, size_t argument, int64_t rank) {
  if (rank == 0) return {};
  return d.dims(argument, rank);
}

Term softmax(Term x, c10::IntArrayRef dims) {
  const Term powers = exp(x - amax(x, dims));
  return powers / sum(powers, dims);
}

// Subtracted one after the other: their sum would lose the smaller.
Term log_softmax(Term x, c10::IntArrayRef dims) {
  const Term shifted = x - amax(x, dims);
  return shifted - log(sum(exp(shifted), dims));
}

Rule forward(Term (*formula)(Term, c10::IntArrayRef)) {
  return [=](Decomposition& d) {
    if (d.output().elements() == 0) return d.finish(d.full(0, d.output()));
    const Term x = d.operand(0, d.compute());
    return d.finish(formula(x, softmax_dims(d, 1, x.info().dims())));
  };
}

Term softmax_backward(Term grad, Term result, c10::IntArrayRef dims) {
  return (grad - sum(grad * result, dims)) * result;
}

Term log_softmax_backward(Term grad, Term result, c10::IntArrayRef dims) {
  return grad - exp(result) * sum(grad, dims);
}

Rule backward(Term (*formula)(Term, Term, c10::IntArrayRef)) {
  return [=](Decomposition& d) {
    if (d.output().elements() == 0) return d.finish(d.full(0, d.output()));
    const Term grad = d.operand(0, d.compute()), result = d.operand(1, d.compute());
    return d.finish(formula(grad, result, softmax_dims(d, 2, grad.info().dims())));
  };
}

// Zero along a dimension that is masked out as a whole.
Term safe_softmax(Term x, c10::IntArrayRef dims) {
  const double lowest = -std::numeric_limits<double>::infinity();
  const Term masked = compare("eq", amax(x, dims), lowest);
  return where(masked, x.number(0), softmax(x, dims));
}

}  // namespace

void add_softmax_rules(RuleTable& table) {
  table["_softmax"] = forward(softmax);
  table["_log_softmax"] = forward(log_softmax);
  table["_safe_softmax"] = forward(safe_softmax);
  table["_softmax_backward_data"] = backward(softmax_backward);
  table["_log_softmax_backward_data"] = backward(log_softmax_backward);
}

}  // namespace torch_lazy
