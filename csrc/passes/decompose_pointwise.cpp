// Arithmetic, comparisons, logic and elementary functions.

#include <c10/core/ScalarType.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "passes/decompose_rules.h"

namespace torch_lazy {
namespace {

using c10::ScalarType;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// ---- One argument ----

// Integers are computed in the floating dtype of the result.
constexpr const char* kFloatFunctions[] = {
    "exp",  "exp2", "expm1", "log",    "log2",   "log10",   "log1p",   "sin",       "cos",   "tan",
    "asin", "acos", "atan",  "sinh",   "cosh",   "tanh",    "asinh",   "acosh",     "atanh", "erf",
    "erfc", "sqrt", "rsqrt", "erfinv", "lgamma", "digamma", "sigmoid", "reciprocal"};

void add_unary_rules(RuleTable& table) {
  for (const char* name : kFloatFunctions)
    table[name] = [name](Decomposition& d) {
      return d.finish(unary(name, d.operand(0, d.compute())));
    };
  for (const char* name : {"neg", "abs", "bitwise_not"})
    table[name] = [name](Decomposition& d) {
      return d.finish(unary(name, d.operand(0, d.compute())));
    };
  for (const char* name : {"floor", "ceil", "round", "trunc"})
    table[name] = [name](Decomposition& d) {
      const Term x = d.operand(0, d.compute());
      return d.finish(c10::isFloatingType(x.dtype()) ? unary(name, x) : x);
    };
  for (const char* name : {"sign", "sgn"})
    table[name] = [](Decomposition& d) {
      const Term x = d.operand(0, d.compute());
      return d.finish(x.dtype() == c10::kBool ? x : unary("sign", x));
    };
  table["frac"] = [](Decomposition& d) {
    const Term x = d.operand(0, d.compute());
    return d.finish(x - unary("trunc", x));
  };
  table["logical_not"] = [](Decomposition& d) {
    return d.finish(logical_not(d.operand(0, c10::kBool)));
  };
  table["deg2rad"] = [](Decomposition& d) {
    return d.finish(d.operand(0, d.compute()) * (std::numbers::pi / 180.0));
  };
  table["rad2deg"] = [](Decomposition& d) {
    return d.finish(d.operand(0, d.compute()) * (180.0 / std::numbers::pi));
  };
  table["nan_to_num"] = [](Decomposition& d) {
    Term x = d.operand(0, d.compute());
    const ScalarType dtype = d.output().dtype;
    if (!c10::isFloatingType(dtype)) return d.finish(x);
    double greatest = std::numeric_limits<double>::max();
    if (dtype == c10::kFloat) greatest = std::numeric_limits<float>::max();
    if (dtype == c10::kHalf) greatest = std::numeric_limits<c10::Half>::max();
    if (dtype == c10::kBFloat16) greatest = std::numeric_limits<c10::BFloat16>::max();
    const double nan = d.given(1) ? d.real(1) : 0;
    const double above = d.given(2) ? d.real(2) : greatest;
    const double below = d.given(3) ? d.real(3) : -greatest;
    Term result = where(compare("eq", x, kInfinity), x.number(above), x);
    result = where(compare("eq", x, -kInfinity), x.number(below), result);
    return d.finish(where(test("isnan", x), x.number(nan), result));
  };
}

// Tests of floating numbers; integers are neither NaN nor infinite.
void add_test_rules(RuleTable& table) {
  for (const char* name : {"isnan", "isinf"})
    table[name] = [name](Decomposition& d) {
      const ScalarType dtype = d.tensor(0).dtype();
      if (!c10::isFloatingType(dtype)) return d.finish(d.full(0, d.output()));
      return d.finish(test(name, d.operand(0, compute_dtype(dtype))));
    };
  table["isposinf"] = [](Decomposition& d) {
    const ScalarType dtype = d.tensor(0).dtype();
    if (!c10::isFloatingType(dtype)) return d.finish(d.full(0, d.output()));
    return d.finish(compare("eq", d.operand(0, compute_dtype(dtype)), kInfinity));
  };
  table["isneginf"] = [](Decomposition& d) {
    const ScalarType dtype = d.tensor(0).dtype();
    if (!c10::isFloatingType(dtype)) return d.finish(d.full(0, d.output()));
    return d.finish(compare("eq", d.operand(0, compute_dtype(dtype)), -kInfinity));
  };
}

// ---- Arithmetic ----

// On bool, sums are disjunctions and products conjunctions.
std::optional<Term> on_bool(const std::string& name, Term a, Term b) {
  if (name == "add" || name == "maximum") return logical_or(a, b);
  if (name == "mul" || name == "minimum") return logical_and(a, b);
  return std::nullopt;
}

// a + alpha * b, rounded once, as in eager. Of half types the CPU's kernels first round alpha to
// them, and what is left over of their vectors rounds the product too, which is not done here.
std::optional<Term> scaled_sum(Term a, Term b, const at::Scalar& alpha, bool negative,
                               const TensorInfo& result) {
  const bool floating = c10::isFloatingType(a.dtype());
  if (a.dtype() == c10::kBool)
    return !negative && alpha.toDouble() == 1 ? on_bool("add", a, b) : std::nullopt;
  if (alpha.isFloatingPoint() ? alpha.toDouble() == 1 : alpha.toLong() == 1)
    return negative ? a - b : a + b;
  if (!floating) return negative ? a - b * alpha : a + b * alpha;
  const double factor = negative ? -alpha.toDouble() : alpha.toDouble();
  if (a.dtype() == result.dtype || !result.device.is_cpu())
    return multiply_add(a, b, b.number(factor));
  const Term rounded{b.builder, b.builder->number(factor, result.dtype)};
  return multiply_add(a, b, rounded.to(b.dtype()));
}

void add_scaled_sum_rules(RuleTable& table) {
  const auto add = [&](const std::string& name, bool negative, bool reversed) {
    const Rule rule = [=](Decomposition& d) {
      const TensorInfo made = d.output();
      Term a = d.common_operand(0), b = d.common_operand(1);
      if (reversed) std::swap(a, b);
      const auto result = scaled_sum(a, b, d.scalar(2), negative, made);
      return result && d.finish(*result);
    };
    table[name + ".Tensor"] = rule;
    table[name + ".Scalar"] = rule;
  };
  add("add", false, false);
  add("sub", true, false);
  add("rsub", true, true);
}

struct Arithmetic {
  const char* name;
  const char* overload;  // of the core operator
  // Whether one element is rounded to a half type of the result before, as more are.
  bool rounds_number;
  std::vector<const char*> overloads;
};

const Arithmetic kArithmetic[] = {
    {"mul", "Tensor", false, {"Tensor", "Scalar"}},
    {"div", "Tensor", false, {"Tensor", "Scalar"}},
    {"remainder", "Tensor", true, {"Tensor", "Scalar", "Scalar_Tensor"}},
    {"fmod", "Tensor", true, {"Tensor", "Scalar"}},
    {"maximum", "", true, {""}},
    {"minimum", "", true, {""}},
    {"atan2", "", true, {""}},
    {"hypot", "", true, {""}},
    {"copysign", "Tensor", true, {"Tensor", "Scalar"}},
};

// Whether ATen's kernels take the second operand as a number: one element that lies on the CPU.
bool is_single_number(Decomposition& d) {
  const Term operand = d.tensor(1);
  if (d.is_number(1) || !has_complete_type(operand.value)) return true;  // or a dynamic one
  const TensorInfo info = operand.info();
  return info.elements() == 1 && info.device.is_cpu();
}

// The second one of a product or quotient: a number is taken in the dtype that is computed in.
Term factor(Decomposition& d) {
  return is_single_number(d) ? d.operand(1, d.compute()) : d.common_operand(1);
}

void add_arithmetic_rules(RuleTable& table) {
  for (const Arithmetic& entry : kArithmetic)
    for (const char* overload : entry.overloads)
      table[with_overload(entry.name, overload)] = [&entry](Decomposition& d) {
        const Term a = d.common_operand(0);
        const Term b = entry.rounds_number ? d.common_operand(1) : factor(d);
        if (a.dtype() != c10::kBool) return d.finish(binary(entry.name, entry.overload, a, b));
        const auto result = on_bool(entry.name, a, b);
        return result && d.finish(*result);
      };
}

Term divide_with_mode(Term a, Term b, const std::string& mode) {
  GraphBuilder& builder = *a.builder;
  return {&builder, builder.pointwise("aten::div", "Tensor_mode", {a.value, b.value}, a.dtype(),
                                      {builder.string(mode)})};
}

void add_division_rules(RuleTable& table) {
  const auto divide = [](Decomposition& d, const std::string& mode) {
    const Term a = d.common_operand(0), b = factor(d);
    if (a.dtype() == c10::kBool) return false;
    if (mode.empty()) return d.finish(a / b);
    // The quotient of vectors of a half type is rounded to it before it is truncated.
    const ScalarType result = d.output().dtype;
    if (mode == "trunc" && a.dtype() != result && !is_single_number(d))
      return d.finish(unary("trunc", (a / b).to(result).to(a.dtype())));
    return d.finish(divide_with_mode(a, b, mode));
  };
  for (const char* name : {"div.Tensor_mode", "div.Scalar_mode"})
    table[name] = [=](Decomposition& d) { return divide(d, d.given(2) ? d.string(2) : ""); };
  for (const char* name : {"floor_divide", "floor_divide.Scalar"})
    table[name] = [=](Decomposition& d) { return divide(d, "floor"); };
}

// ---- Powers ----

// base^1.5 and base^2.5, within 2 units in the last place, and 4 where the base is a reciprocal.
// Minus infinity has no root, and a power; `infinite` says where the base is that, and no
// reciprocal that overflowed.
Term half_power(Term base, double exponent, Term infinite) {
  const Term root = base * sqrt(base);
  const Term power = exponent == 1.5 ? root : root * abs(base);
  return where(infinite, base.number(std::numeric_limits<double>::infinity()), power);
}

// The exponents that ATen's CPU kernels treat apart, and those of inverse-square laws, for which a
// root is much cheaper than a logarithm.
std::optional<Term> special_power(Term x, const at::Scalar& exponent, ScalarType result) {
  const double n = exponent.toDouble();
  if (n == 0) return x.number(1);
  if (n == 1) return x;
  if (n == 2) return x * x;
  if (n == 3) return x * x * x;
  if (!c10::isFloatingType(x.dtype())) return std::nullopt;
  if (n == -2) return 1 / (x * x);
  if (result == c10::kHalf) return std::nullopt;
  if (n == 0.5) return sqrt(x);
  if (n == -0.5) return rsqrt(x);
  if (n == -1) return reciprocal(x);
  if (n == 1.5 || n == 2.5)
    return half_power(x, n, compare("eq", x, -std::numeric_limits<double>::infinity()));
  if (n == -1.5 || n == -2.5) return half_power(reciprocal(x), -n, compare("eq", x, 0));
  return std::nullopt;
}

void add_power_rules(RuleTable& table) {
  table["pow.Tensor_Scalar"] = [](Decomposition& d) {
    const Term x = d.operand(0, d.compute());
    if (x.dtype() == c10::kBool) return false;
    // The exponent is rounded to a half type, too.
    const ScalarType result = d.output().dtype;
    const at::Scalar exponent = constant_number(d.builder().number(d.scalar(1), result)).value();
    if (const auto special = special_power(x, exponent, result)) return d.finish(*special);
    return d.finish(binary("pow", "Tensor_Tensor", x, d.common_operand(1)));
  };
  const auto general = [](Decomposition& d) {
    if (d.compute() == c10::kBool) return false;
    return d.finish(binary("pow", "Tensor_Tensor", d.common_operand(0), d.common_operand(1)));
  };
  table["pow.Tensor_Tensor"] = general;
  table["pow.Scalar"] = general;
}

// ---- Comparisons, logic, bits ----

// The dtype that two operands meet in, as at::result_type says. nullopt where that depends on the
// default dtype: a Python float beside integers.
std::optional<ScalarType> common_dtype(Decomposition& d) {
  ScalarType with_dims = ScalarType::Undefined, without = ScalarType::Undefined,
             numbers = ScalarType::Undefined;
  for (const size_t index : {0, 1}) {
    Term term = d.tensor(index);
    const auto number = constant_number(term.value);
    const bool is_tensor = term.value->type()->kind() == c10::TypeKind::TensorType;
    if (!is_tensor || (number && is_wrapped_number(term.value))) {
      numbers = number ? number->type() : c10::kDouble;  // one that is no constant is dynamic
      continue;
    }
    const ScalarType dtype = term.dtype();
    ScalarType& group = term.info().dims() > 0 ? with_dims : without;
    group = group == ScalarType::Undefined ? dtype : c10::promoteTypes(group, dtype);
  }
  const auto combine = [](ScalarType higher, ScalarType lower) {
    if (higher == ScalarType::Undefined) return lower;
    if (lower == ScalarType::Undefined || c10::isFloatingType(higher)) return higher;
    if (higher == c10::kBool || c10::isFloatingType(lower)) return c10::promoteTypes(higher, lower);
    return higher;
  };
  const ScalarType tensors = combine(with_dims, without);
  if (c10::isFloatingType(numbers) && !c10::isFloatingType(tensors)) return std::nullopt;
  return combine(tensors, numbers);
}

void add_comparison_rules(RuleTable& table) {
  for (const char* name : {"eq", "ne", "lt", "le", "gt", "ge"}) {
    const Rule rule = [name](Decomposition& d) {
      const auto common = common_dtype(d);
      if (!common) return false;
      const ScalarType dtype = compute_dtype(*common);
      // Numbers, and tensors of wider dtypes, are rounded to the common one first.
      const Term a = d.operand(0, *common).to(dtype), b = d.operand(1, *common).to(dtype);
      return d.finish(compare(name, a, b));
    };
    table[with_overload(name, "Tensor")] = rule;
    table[with_overload(name, "Scalar")] = rule;
  }
}

void add_logic_rules(RuleTable& table) {
  for (const char* name : {"logical_and", "logical_or", "logical_xor"})
    table[name] = [name](Decomposition& d) {
      return d.finish(binary(name, "", d.operand(0, c10::kBool), d.operand(1, c10::kBool)));
    };
  for (const char* name : {"bitwise_and", "bitwise_or", "bitwise_xor"})
    for (const char* overload : {"Tensor", "Scalar", "Scalar_Tensor"})
      table[with_overload(name, overload)] = [name](Decomposition& d) {
        return d.finish(
            binary(name, "Tensor", d.operand(0, d.compute()), d.operand(1, d.compute())));
      };
  const auto shift = [&](const char* name, const char* alias) {
    const Rule rule = [name](Decomposition& d) {
      if (!c10::isIntegralType(d.compute(), false)) return false;
      return d.finish(binary(name, "Tensor", d.operand(0, d.compute()), d.operand(1, d.compute())));
    };
    for (const char* overload : {"Tensor", "Tensor_Scalar", "Scalar_Tensor"})
      table[with_overload(name, overload)] = rule;
    for (const char* overload : {"Tensor", "Scalar"}) table[with_overload(alias, overload)] = rule;
  };
  shift("bitwise_left_shift", "__lshift__");
  shift("bitwise_right_shift", "__rshift__");
}

}  // namespace

void add_pointwise_rules(RuleTable& table) {
  add_unary_rules(table);
  add_test_rules(table);
  add_scaled_sum_rules(table);
  add_arithmetic_rules(table);
  add_division_rules(table);
  add_power_rules(table);
  add_comparison_rules(table);
  add_logic_rules(table);
}

}  // namespace torch_lazy
