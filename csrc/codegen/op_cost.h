// What it costs to evaluate an expression once more.
#pragma once

#include "codegen/loop_ir.h"
#include "codegen/schedule.h"

namespace torch_lazy::codegen {

// In units of about one simple vector instruction for kFloat (an add, a load from the first-level
// cache).
int cost_of(Op op);
int cost_of(const Expr& expr);

// Of all that a pass evaluates.
int cost_of(const Kernel& kernel, const Pass& pass);

// Of keeping a value in scratch, and of taking it back.
constexpr int kKeepCost = 2;
constexpr int kTakeCost = 1;

}  // namespace torch_lazy::codegen
