#include "codegen/draft_expressions.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <bit>
#include <optional>
#include <utility>

namespace torch_lazy::codegen {
namespace {

std::optional<double> rounded(double value, Type type) {
  switch (type) {
    case Type::kDouble:
      return value;
    case Type::kFloat:
      return float(value);
    case Type::kBFloat16:
      return float(c10::BFloat16(float(value)));
    case Type::kHalf:
      return float(c10::Half(float(value)));
    default:
      return std::nullopt;
  }
}

// Of a number that a launch brings, and that has perhaps been cast.
std::optional<double> value_of_number(const Draft& draft, ExprId id) {
  const Expr& expr = draft.exprs[size_t(id)];
  if (expr.op == Op::kNumber) return rounded(draft.numbers[size_t(expr.value.value)], expr.type);
  if (expr.op != Op::kCast) return std::nullopt;
  const std::optional<double> value = value_of_number(draft, expr.arguments[0]);
  return value ? rounded(*value, expr.type) : std::nullopt;
}

}  // namespace

ExprId add(Draft& draft, Expr expr) {
  draft.exprs.push_back(std::move(expr));
  return ExprId(draft.exprs.size()) - 1;
}

ExprId operation(Draft& draft, Op op, Type type, std::vector<ExprId> arguments) {
  Expr expr;
  expr.op = op;
  expr.type = type;
  expr.arguments = std::move(arguments);
  return add(draft, std::move(expr));
}

ExprId cast(Draft& draft, ExprId id, Type to) {
  return type_at(draft, id) == to ? id : operation(draft, Op::kCast, to, {id});
}

ExprId integer(Draft& draft, int64_t value, Type type) {
  Expr expr;
  expr.op = Op::kInteger;
  expr.type = type;
  expr.value = Size::constant(value);
  return add(draft, std::move(expr));
}

ExprId number(Draft& draft, const c10::Scalar& scalar, Type type) {
  if (type == Type::kBool) return integer(draft, scalar.to<bool>(), type);
  if (!is_floating(type)) return integer(draft, scalar.to<int64_t>(), type);
  const double value = scalar.to<double>();
  size_t slot = 0;
  while (slot < draft.numbers.size() &&
         std::bit_cast<uint64_t>(draft.numbers[slot]) != std::bit_cast<uint64_t>(value))
    ++slot;
  if (slot == draft.numbers.size()) draft.numbers.push_back(value);
  Expr expr;
  expr.op = Op::kNumber;
  expr.type = is_low(type) ? Type::kFloat : type;
  expr.value = Size::of_slot(uint32_t(slot));
  return cast(draft, add(draft, std::move(expr)), type);
}

ExprId quotient_of_bool(Draft& draft, Type type, ExprId dividend, ExprId divisor) {
  // False and true are 0 and 1, whatever they are cast to.
  while (draft.exprs[size_t(dividend)].op == Op::kCast)
    dividend = draft.exprs[size_t(dividend)].arguments[0];
  if (type_at(draft, dividend) != Type::kBool) return kNoId;
  const std::optional<double> by = value_of_number(draft, divisor);
  if (!by) return kNoId;
  const auto quotient = [&](double of) {
    return number(draft, type == Type::kFloat ? double(float(of) / float(*by)) : of / *by, type);
  };
  const ExprId of_true = quotient(1), of_false = quotient(0);
  return operation(draft, Op::kSelect, type, {dividend, of_true, of_false});
}

ExprId index_of(Draft& draft, const Affine& affine) {
  ExprId sum = kNoId;
  const auto plus = [&](ExprId term) {
    sum = sum == kNoId ? term : operation(draft, Op::kAdd, Type::kInt64, {sum, term});
  };
  for (size_t axis = 0; axis < draft.extents.size(); ++axis) {
    if (affine.coefficients[axis] == 0) continue;
    Expr expr;
    expr.op = Op::kIndex;
    expr.type = Type::kInt64;
    expr.dimension = uint32_t(axis);
    ExprId term = add(draft, std::move(expr));
    if (affine.coefficients[axis] != 1)
      term = operation(draft, Op::kMul, Type::kInt64,
                       {term, integer(draft, affine.coefficients[axis], Type::kInt64)});
    plus(term);
  }
  if (sum == kNoId || affine.constant != 0) plus(integer(draft, affine.constant, Type::kInt64));
  return sum;
}

ExprId range_element(Draft& draft, const CoreNode& node, ExprId position, Type type) {
  // Computed in double or int64 and rounded once, as ATen's arange does on the CPU.
  if (!is_floating(type)) {
    ExprId element = position;
    const auto with = [&](Op op, int64_t value) {
      element = operation(draft, op, Type::kInt64, {element, integer(draft, value, Type::kInt64)});
    };
    if (const auto step = node.step.to<int64_t>(); step != 1) with(Op::kMul, step);
    if (const auto first = node.number.to<int64_t>(); first != 0) with(Op::kAdd, first);
    return cast(draft, element, type);
  }
  const ExprId scaled =
      operation(draft, Op::kMul, Type::kDouble,
                {cast(draft, position, Type::kDouble), number(draft, node.step, Type::kDouble)});
  const ExprId sum = operation(draft, Op::kAdd, Type::kDouble,
                               {scaled, number(draft, node.number, Type::kDouble)});
  return cast(draft, is_low(type) ? cast(draft, sum, Type::kFloat) : sum, type);
}

ExprId reduction(Draft& draft, Op op, Type result, ExprId argument) {
  switch (op) {
    case Op::kReduceArgMax:
    case Op::kReduceArgMin:
      if (is_low(type_at(draft, argument))) argument = cast(draft, argument, Type::kFloat);
      return operation(draft, op, Type::kInt64, {argument});
    case Op::kReduceAnd:
    case Op::kReduceOr:
      return cast(draft, operation(draft, op, Type::kBool, {cast(draft, argument, Type::kBool)}),
                  result);
    default: {
      const Type computed = is_low(result) ? Type::kFloat : result;
      if (computed == Type::kBool)  // of bools: max is any, min is all
        op = op == Op::kReduceMin || op == Op::kReduceProd ? Op::kReduceAnd : Op::kReduceOr;
      return cast(draft, operation(draft, op, computed, {cast(draft, argument, computed)}), result);
    }
  }
}

}  // namespace torch_lazy::codegen
