// Operators of several arithmetic steps on two or three arguments.

#include <c10/core/ScalarType.h>

#include <cmath>
#include <limits>

#include "passes/decompose_rules.h"

namespace torch_lazy {
namespace {

using c10::ScalarType;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// ---- Sums and products with a weight ----

void add_weighted_rules(RuleTable& table) {
  table["addcmul"] = [](Decomposition& d) {
    if (d.compute() == c10::kBool) return false;
    const Term x = d.common_operand(0);
    Term a = d.common_operand(1);
    const Term b = d.common_operand(2);
    if (!d.is(3, 1)) a = d.operand(3, a.dtype()) * a;
    return d.finish(multiply_add(x, a, b));
  };
  table["addcdiv"] = [](Decomposition& d) {
    if (!c10::isFloatingType(d.compute())) return false;
    const Term x = d.common_operand(0);
    Term a = d.common_operand(1);
    const Term b = d.common_operand(2);
    if (!d.is(3, 1)) a = d.operand(3, a.dtype()) * a;
    return d.finish(x + a / b);
  };
  // Interpolates from the nearer end, which a weight that is known only when the kernel runs does
  // not tell yet.
  table["lerp.Tensor"] = table["lerp.Scalar"] = [](Decomposition& d) {
    const Term a = d.common_operand(0), b = d.common_operand(1);
    const Term weight = d.is_number(2) ? d.operand(2, d.compute()) : d.common_operand(2);
    if (const auto number = constant_number(weight.value)) {
      const bool near_a = std::abs(number->toDouble()) < 0.5;
      const Term factor = near_a ? weight : a.number(number->toDouble() - 1);
      return d.finish(multiply_add(near_a ? a : b, factor, b - a));
    }
    const Term near_a = compare("lt", abs(weight), 0.5);
    return d.finish(multiply_add(where(near_a, a, b), where(near_a, weight, weight - 1), b - a));
  };
}

// ---- Minimum and maximum that ignore NaN ----

void add_number_bounds_rules(RuleTable& table) {
  table["fmax"] = [](Decomposition& d) {
    const Term a = d.common_operand(0), b = d.common_operand(1);
    if (a.dtype() == c10::kBool) return d.finish(logical_or(a, b));
    if (!c10::isFloatingType(a.dtype())) return d.finish(maximum(a, b));
    return d.finish(where(test("isnan", a), b, where(test("isnan", b), a, maximum(a, b))));
  };
  table["fmin"] = [](Decomposition& d) {
    const Term a = d.common_operand(0), b = d.common_operand(1);
    if (a.dtype() == c10::kBool) return d.finish(logical_and(a, b));
    if (!c10::isFloatingType(a.dtype())) return d.finish(minimum(a, b));
    return d.finish(where(test("isnan", a), b, where(test("isnan", b), a, minimum(a, b))));
  };
}

// ---- Logarithms and steps ----

void add_logarithm_rules(RuleTable& table) {
  for (const char* overload : {"Tensor", "Scalar_Self", "Scalar_Other"})
    table[std::string("xlogy.") + overload] = [](Decomposition& d) {
      const Term x = d.common_operand(0), y = d.common_operand(1);
      const Term product = where(compare("eq", x, 0), x.number(0), x * log(y));
      return d.finish(where(test("isnan", y), x.number(kNan), product));
    };
  // Equal infinities are kept apart, as their difference is NaN.
  table["logaddexp"] = [](Decomposition& d) {
    const Term a = d.common_operand(0), b = d.common_operand(1);
    const Term both = logical_and(test("isinf", a), compare("eq", a, b));
    return d.finish(where(both, a, maximum(a, b) + log1p(exp(-abs(a - b)))));
  };
  table["heaviside"] = [](Decomposition& d) {
    if (d.compute() == c10::kBool) return false;
    const Term x = d.common_operand(0), values = d.common_operand(1);
    return d.finish(where(compare("eq", x, 0), values, compare("gt", x, 0).to(x.dtype())));
  };
}

}  // namespace

void add_compound_rules(RuleTable& table) {
  add_weighted_rules(table);
  add_number_bounds_rules(table);
  add_logarithm_rules(table);
}

}  // namespace torch_lazy
