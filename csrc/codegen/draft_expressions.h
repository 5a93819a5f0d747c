// Expressions that are added to a draft, and found by their index.
#pragma once

#include <c10/core/Scalar.h>

#include <cstdint>
#include <vector>

#include "codegen/affine.h"
#include "codegen/expression_builder.h"

namespace torch_lazy::codegen {

ExprId add(Draft& draft, Expr expr);
ExprId operation(Draft& draft, Op op, Type type, std::vector<ExprId> arguments);
// The expression itself where it has the type.
ExprId cast(Draft& draft, ExprId id, Type to);
ExprId integer(Draft& draft, int64_t value, Type type);
// Floating numbers are brought by each launch: kernels that differ in them alone are one.
ExprId number(Draft& draft, const c10::Scalar& scalar, Type type);
// A bool, whatever it has been cast to, divided by a number, as dropout scales its mask: a choice
// of two numbers that the launch brings, since GPUs divide 0 in a branch of its own, which nearly
// each warp then takes. (Of two divisions in a kernel compilers make one again.) Of a floating type
// that is not low; kNoId of other operands.
ExprId quotient_of_bool(Draft& draft, Type type, ExprId dividend, ExprId divisor);
// The value of the function, kInt64.
ExprId index_of(Draft& draft, const Affine& affine);
// The element of a range (CoreKind::kArange) at a position, kInt64.
ExprId range_element(Draft& draft, const CoreNode& node, ExprId position, Type type);
// The argument reduced by the operation, as a value of the result's type.
ExprId reduction(Draft& draft, Op op, Type result, ExprId argument);

inline Type type_at(const Draft& draft, ExprId id) {
  return draft.exprs[size_t(id)].type;
}

}  // namespace torch_lazy::codegen
