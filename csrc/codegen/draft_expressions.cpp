#include "codegen/draft_expressions.h"

#include <bit>
#include <utility>

namespace torch_lazy::codegen {

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

}  // namespace torch_lazy::codegen
