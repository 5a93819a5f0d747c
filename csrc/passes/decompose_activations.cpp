// Activation functions and their gradients: the formulas of ATen's CPU kernels.

#include <numbers>

#include "passes/decompose_rules.h"

namespace torch_lazy {
namespace {

constexpr double kSqrtHalf = 1 / std::numbers::sqrt2;
constexpr double kSqrtTwoOverPi = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
constexpr double kGeluCubic = 0.044715;  // of the tanh approximation

// max(x, low), then min with high: NaN passes.
// Of two zeros the second is taken, which is x here, as ATen's vectors have it.
Term clamp(Term x, const at::Scalar& low, const at::Scalar& high) {
  return minimum(x.number(high), maximum(x.number(low), x));
}

Term logistic(Term x) {
  return 1 / (1 + exp(-x));
}

Term softplus(Term x) {
  return log1p(exp(x));
}

// ---- GELU ----

Term gelu_inner(Term x) {
  return kSqrtTwoOverPi * (x + kGeluCubic * (x * x * x));
}

Term gelu(Term x, bool tanh_approximation) {
  if (tanh_approximation) return 0.5 * x * (1 + tanh(gelu_inner(x)));
  return x * 0.5 * (1 + erf(x * kSqrtHalf));
}

Term gelu_backward(Term grad, Term x, bool tanh_approximation) {
  if (!tanh_approximation) {
    const Term cdf = 0.5 * (1 + erf(x * kSqrtHalf));
    const Term pdf = 0.5 * kSqrtTwoOverPi * exp(x * x * -0.5);
    return grad * (cdf + x * pdf);
  }
  const Term t = tanh(gelu_inner(x));
  const Term left = 0.5 * x, right = 1 + t;
  const Term inner_derivative = kSqrtTwoOverPi * (1 + 3 * kGeluCubic * (x * x));
  return grad * (0.5 * right + left * (1 - t * t) * inner_derivative);
}

void add_gelu_rules(RuleTable& table) {
  table["gelu"] = [](Decomposition& d) {
    return d.finish(gelu(d.operand(0, d.compute()), d.string(1) == "tanh"));
  };
  table["gelu_backward"] = [](Decomposition& d) {
    return d.finish(
        gelu_backward(d.operand(0, d.compute()), d.operand(1, d.compute()), d.string(2) == "tanh"));
  };
}

// ---- From the sigmoid ----

void add_sigmoid_rules(RuleTable& table) {
  table["silu"] = [](Decomposition& d) {
    const Term x = d.operand(0, d.compute());
    return d.finish(x / (1 + exp(-x)));
  };
  table["silu_backward"] = [](Decomposition& d) {
    const Term grad = d.operand(0, d.compute()), x = d.operand(1, d.compute());
    const Term s = logistic(x);
    return d.finish(grad * s * (1 + x * (1 - s)));
  };
  table["sigmoid_backward"] = [](Decomposition& d) {
    const Term grad = d.operand(0, d.compute()), result = d.operand(1, d.compute());
    return d.finish(grad * (1 - result) * result);
  };
  table["tanh_backward"] = [](Decomposition& d) {
    const Term grad = d.operand(0, d.compute()), result = d.operand(1, d.compute());
    return d.finish(grad * (1 - result * result));
  };
  // With e = exp(x) and w = (1 + e)^2 - 1, tanh(softplus(x)) = w / (w + 2); 1 where x is large.
  const auto exp_of = [](Term x) { return exp(minimum(x, x.number(20))); };
  table["mish"] = [=](Decomposition& d) {
    const Term x = d.operand(0, d.compute());
    const Term e = exp_of(x), w = e * (e + 2);
    return d.finish(x * (w / (w + 2)));
  };
  table["mish_backward"] = [=](Decomposition& d) {
    const Term grad = d.operand(0, d.compute()), x = d.operand(1, d.compute());
    const Term e = exp_of(x), w = e * (e + 2), t = w / (w + 2);
    return d.finish(grad * (t + x * (e / (e + 1)) * (1 - t * t)));
  };
  table["log_sigmoid_forward"] = [](Decomposition& d) {
    const Term x = d.operand(0, d.compute());
    const Term buffer = exp(-abs(x));
    if (d.needed(1)) {
      if (d.output(1).sizes != d.output(0).sizes) return false;
      d.finish(buffer, 1);
    }
    return d.finish(minimum(x, x.number(0)) - log1p(buffer));
  };
  table["log_sigmoid_backward"] = [](Decomposition& d) {
    const Term grad = d.operand(0, d.compute()), x = d.operand(1, d.compute());
    // On other devices than the CPU the forward pass saves an empty buffer.
    const bool saved = d.tensor(2).info().sizes == x.info().sizes;
    const Term buffer = saved ? d.operand(2, x.dtype()) : exp(-abs(x));
    const Term negative = compare("lt", x, 0);
    const Term most = where(negative, x.number(1), x.number(0));
    const Term sign = where(negative, x.number(1), x.number(-1));
    return d.finish(grad * (most - sign * (buffer / (1 + buffer))));
  };
}

void add_softplus_rules(RuleTable& table) {
  table["softplus"] = [](Decomposition& d) {
    const Term x = d.operand(0, d.compute());
    const Term beta = d.operand(1, x.dtype()), scaled = x * beta;
    const Term large = compare("gt", scaled, d.operand(2, x.dtype()));
    return d.finish(where(large, x, softplus(scaled) / beta));
  };
  table["softplus_backward"] = [](Decomposition& d) {
    const Term grad = d.operand(0, d.compute()), x = d.operand(1, d.compute());
    const Term scaled = x * d.operand(2, x.dtype()), z = exp(scaled);
    const Term large = compare("gt", scaled, d.operand(3, x.dtype()));
    return d.finish(where(large, grad, grad * z / (z + 1)));
  };
  // ATen's kernels for the CPU round to a half type after each step, its bounds too, of which the
  // lower one may be the greater.
  table["logit"] = [](Decomposition& d) {
    const TensorInfo made = d.output();
    const auto rounded = [&](Term x) {
      return made.device.is_cpu() ? x.to(made.dtype).to(x.dtype()) : x;
    };
    Term x = d.operand(0, d.compute());
    if (d.given(1)) {
      const Term low = rounded(x.number(d.real(1))), high = rounded(x.number(1 - d.real(1)));
      x = where(compare("lt", x, low), low, where(compare("gt", x, high), high, x));
    }
    return d.finish(log(rounded(x / rounded(1 - x))));
  };
}

// ---- Piecewise linear ----

void add_threshold_rules(RuleTable& table) {
  table["relu"] = [](Decomposition& d) {
    const Term x = d.operand(0, d.compute());
    return d.finish(maximum(x.number(0), x));  // see clamp()
  };
  table["relu6"] = [](Decomposition& d) {
    return d.finish(clamp(d.operand(0, d.compute()), 0, 6));
  };
  table["threshold"] = [](Decomposition& d) {
    const Term x = d.operand(0, d.compute());
    return d.finish(where(compare("le", x, d.operand(1, x.dtype())), d.operand(2, x.dtype()), x));
  };
  table["threshold_backward"] = [](Decomposition& d) {
    const Term grad = d.operand(0, d.compute()), x = d.operand(1, d.compute());
    return d.finish(where(compare("le", x, d.operand(2, x.dtype())), grad.number(0), grad));
  };
  table["hardtanh"] = [](Decomposition& d) {
    return d.finish(clamp(d.operand(0, d.compute()), d.scalar(1), d.scalar(2)));
  };
  table["hardtanh_backward"] = [](Decomposition& d) {
    const Term grad = d.operand(0, d.compute()), x = d.operand(1, d.compute());
    // A NaN is not inside, as ATen's vectors have it.
    const Term inside = logical_and(compare("gt", x, d.scalar(2)), compare("lt", x, d.scalar(3)));
    return d.finish(where(inside, grad, grad.number(0)));
  };
  table["leaky_relu"] = [](Decomposition& d) {
    const Term x = d.operand(0, d.compute());
    return d.finish(where(compare("gt", x, 0), x, x * d.operand(1, x.dtype())));
  };
  table["leaky_relu_backward"] = [](Decomposition& d) {
    const Term grad = d.operand(0, d.compute()), x = d.operand(1, d.compute());
    return d.finish(where(compare("gt", x, 0), grad, grad * d.operand(2, x.dtype())));
  };
  table["_prelu_kernel"] = [](Decomposition& d) {
    const Term x = d.operand(0, d.compute()), weight = d.operand(1, d.compute());
    return d.finish(where(compare("gt", x, 0), x, weight * x));
  };
  table["_prelu_kernel_backward"] = [](Decomposition& d) {
    const Term grad = d.operand(0, d.compute()), x = d.operand(1, d.compute());
    const Term weight = d.operand(2, d.compute());
    const Term positive = compare("gt", x, 0);
    if (d.needed(1)) d.finish(where(positive, x.number(0), x * grad), 1);
    return d.finish(where(positive, grad, weight * grad));
  };
}

void add_hard_rules(RuleTable& table) {
  table["hardswish"] = [](Decomposition& d) {
    const Term x = d.operand(0, d.compute());
    return d.finish(x * clamp(x + 3, 0, 6) / 6);
  };
  table["hardswish_backward"] = [](Decomposition& d) {
    const Term grad = d.operand(0, d.compute()), x = d.operand(1, d.compute());
    const Term inner = where(compare("ge", x, 3), grad, grad * (x / 3 + 0.5));
    return d.finish(where(compare("le", x, -3), x.number(0), inner));
  };
  table["hardsigmoid"] = [](Decomposition& d) {
    return d.finish(clamp(d.operand(0, d.compute()) + 3, 0, 6) / 6);
  };
  table["hardsigmoid_backward"] = [](Decomposition& d) {
    const Term grad = d.operand(0, d.compute()), x = d.operand(1, d.compute());
    const Term inside = logical_and(compare("gt", x, -3), compare("lt", x, 3));
    // ATen's sixth is a float even where it computes in double.
    return d.finish(where(inside, grad * double(1.0F / 6.0F), x.number(0)));
  };
  table["hardshrink"] = [](Decomposition& d) {
    const Term x = d.operand(0, d.compute());
    const double limit = d.real(1);
    const Term inside = logical_and(compare("ge", x, -limit), compare("le", x, limit));
    return d.finish(where(inside, x.number(0), x));
  };
  for (const char* name : {"hardshrink_backward", "softshrink_backward"})
    table[name] = [](Decomposition& d) {
      const Term grad = d.operand(0, d.compute()), x = d.operand(1, d.compute());
      const double limit = d.real(2);
      const Term outside = logical_or(compare("lt", x, -limit), compare("gt", x, limit));
      return d.finish(where(outside, grad, grad.number(0)));
    };
  table["softshrink"] = [](Decomposition& d) {
    const Term x = d.operand(0, d.compute());
    const double limit = d.real(1);
    // x * 0 keeps NaN, and is +0 with another added.
    const Term below = where(compare("lt", x, -limit), x + limit, x * 0 + 0);
    return d.finish(where(compare("gt", x, limit), x - limit, below));
  };
}

// ---- ELU ----

Term elu(Term x, double alpha, double scale, double input_scale) {
  const Term negative = expm1(x * input_scale) * (alpha * scale);
  return where(compare("lt", x, 0), negative, x * scale);
}

void add_elu_rules(RuleTable& table) {
  table["elu"] = [](Decomposition& d) {
    return d.finish(elu(d.operand(0, d.compute()), d.real(1), d.real(2), d.real(3)));
  };
  table["celu"] = [](Decomposition& d) {
    return d.finish(elu(d.operand(0, d.compute()), d.real(1), 1, 1 / d.real(1)));
  };
  table["elu_backward"] = [](Decomposition& d) {
    const Term grad = d.operand(0, d.compute()), x = d.operand(5, d.compute());
    const double negative = d.real(1) * d.real(2), scale = d.real(2), input_scale = d.real(3);
    const Term below = d.boolean(4) ? grad * input_scale * (x + negative)
                                    : grad * (input_scale * negative) * exp(x * input_scale);
    // As ATen's vectors: NaN goes below, and stays.
    return d.finish(where(compare("gt", x, 0), grad * scale, below));
  };
}

// ---- Dropout ----

void add_dropout_rules(RuleTable& table) {
  table["native_dropout_backward"] = [](Decomposition& d) {
    const Term grad = d.operand(0, d.compute()), mask = d.operand(1, d.compute());
    return d.finish(grad * mask * d.real(2));
  };
}

}  // namespace

void add_activation_rules(RuleTable& table) {
  add_gelu_rules(table);
  add_sigmoid_rules(table);
  add_softplus_rules(table);
  add_threshold_rules(table);
  add_hard_rules(table);
  add_elu_rules(table);
  add_dropout_rules(table);
}

}  // namespace torch_lazy
