// What is computed for two neighbouring vectors at once, each operation of the one beside that of
// the other, on a CPU.
//
// An elementary function of float is a chain of which each link waits for the one before, longer
// than what a processor looks ahead; another one beside it fills the time: exp takes .58 ns an
// element instead of .65, softplus 1.8 instead of 2.3 (one core of a Zen 3). Where a vector is a
// line of the cache it was not tried.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/loop_ir.h"

namespace torch_lazy::codegen {

// Whether a body of these expressions is computed so with vectors of `lanes` floats. A sweep that
// reduces is (print_sweep), whatever its length.
bool gain_by_pairs(const Kernel& kernel, const std::vector<ExprId>& exprs, int lanes);

// Of a kernel without reductions, called with these sizes, whose loops are chosen: Kernel::pairs.
// None of short rows, which are mostly what is left behind pairs, and of what is not loaded and
// stored as it lies.
bool goes_by_pairs(const Kernel& kernel, const std::vector<int64_t>& sizes, int lanes);

}  // namespace torch_lazy::codegen
