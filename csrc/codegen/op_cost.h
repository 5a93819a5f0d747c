// What it costs to evaluate an expression once more.
#pragma once

#include "codegen/loop_ir.h"
#include "codegen/sweeps.h"

namespace torch_lazy::codegen {

// In the units of primitive::cost_of.
int cost_of(const Expr& expr);

// Of all that a sweep evaluates.
int cost_of(const Kernel& kernel, const Sweep& sweep);

// How many times the registers of kFloat a vector of this type takes.
int width_of(Type type);

// Of spilling a value to scratch, and of reloading it.
constexpr int kSpillCost = 2;
constexpr int kReloadCost = 1;

}  // namespace torch_lazy::codegen
