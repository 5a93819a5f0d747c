#include "codegen/pointwise.h"

namespace torch_lazy::codegen {
namespace {

// Operators whose bool form is another operator.
Op on_bools(Op op) {
  switch (op) {
    case Op::kAdd:
    case Op::kMax:
      return Op::kOr;
    case Op::kMul:
    case Op::kMin:
      return Op::kAnd;
    default:
      return op;
  }
}

}  // namespace

ExprId build_pointwise(Op op, Type result, std::vector<ExprId> arguments,
                       const PointwiseBuilder& builder) {
  const auto cast = [&](ExprId id, Type to) {
    return builder.type(id) == to ? id : builder.operation(Op::kCast, to, {id});
  };
  const bool select = op == Op::kSelect;
  for (size_t i = select; i < arguments.size(); ++i)
    if (is_low(builder.type(arguments[i]))) arguments[i] = cast(arguments[i], Type::kFloat);
  if (select) arguments[0] = cast(arguments[0], Type::kBool);
  if (is_comparison(op) || op == Op::kIsNan || op == Op::kIsInf)
    return cast(builder.operation(op, Type::kBool, arguments), result);
  if (op == Op::kPhiloxUniform) return cast(builder.operation(op, Type::kFloat, arguments), result);
  const Type computed = is_low(result) ? Type::kFloat : result;
  for (size_t i = select; i < arguments.size(); ++i) arguments[i] = cast(arguments[i], computed);
  if (computed == Type::kBool) op = on_bools(op);
  return cast(builder.operation(op, computed, arguments), result);
}

}  // namespace torch_lazy::codegen
