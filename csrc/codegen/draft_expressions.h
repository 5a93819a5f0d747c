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
