// Pointwise core operators as expressions.
#pragma once

#include <functional>
#include <vector>

#include "codegen/loop_ir.h"

namespace torch_lazy::codegen {

struct PointwiseBuilder {
  std::function<ExprId(Op, Type, std::vector<ExprId>)> operation;
  std::function<Type(ExprId)> type;
};

// `op` as ATen computes it for operands of one dtype and a result of type `result`: bfloat16 and
// half go through float and are rounded, bools add as `or` and multiply as `and`.
ExprId build_pointwise(Op op, Type result, std::vector<ExprId> arguments,
                       const PointwiseBuilder& builder);

}  // namespace torch_lazy::codegen
