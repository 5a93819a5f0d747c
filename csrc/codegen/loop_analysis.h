// What follows from a kernel's loop IR alone, whatever the target.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/loop_ir.h"

namespace torch_lazy::codegen {

// A set of loop dimensions, bit i for dimension i: parallel, then reduction, as in Access::strides.
using Dimensions = uint64_t;

constexpr size_t kMaxDimensions = 32;
constexpr size_t kNoDimension = ~size_t{0};

Dimensions dimension_bit(size_t dimension);
Dimensions reduction_dimensions(const Kernel& kernel);

// Along which the vector lanes run; kNoDimension where there is none.
size_t lane_dimension(const Kernel& kernel);

// A work item's steps over reduction dimensions of these many points at most, all constants, are
// written out one after the other.
constexpr int64_t kMostUnrolledSteps = 16;
bool is_unrolled(const Kernel& kernel);

// The widest stride along the lanes at which whole vectors are sorted in registers. It is a
// constant of the kernel then.
constexpr int64_t kWidestTile = 8;

// A reduction to the index of the greatest or least.
bool is_arg_reduction(Op op);

bool has_scans(const std::vector<Expr>& exprs);

// A sum of floating numbers. Where one accumulator would add up more of them than kBlockSteps, a
// power of two, one after the other, the sum is kept in two stages (print_reduction.h).
bool is_floating_sum(const Expr& expr);
constexpr int64_t kBlockSteps = 64;

// Whether the kernel loads from it.
bool is_read(const Kernel& kernel, uint32_t buffer);

// The expressions that `expr` reads: arguments, predicate, indirect indices of its access.
std::vector<ExprId> operands_of(const Expr& expr);
std::vector<ExprId> operands_of(const Store& store);

// Along which dimensions an address changes, given the same of all expressions before it.
Dimensions varying_dimensions(const Access& access, const std::vector<Dimensions>& of_exprs);

// Along which dimensions each expression may change. A reduction never varies along the
// reduction dimensions, a scan always does.
std::vector<Dimensions> varying_dimensions(const Kernel& kernel);

// How many reductions must be complete, one after the other, before each expression can be
// evaluated: the number of the sweep over the reduction dimensions in which it can be at the
// earliest.
std::vector<int> reduction_levels(const Kernel& kernel);

}  // namespace torch_lazy::codegen
