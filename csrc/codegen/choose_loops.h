// Chooses the loops of a drafted kernel: order of axes, which of them become one, where the vector
// lanes run, how long reductions are cut, and which numbers are slots.
#pragma once

#include <vector>

#include "codegen/expression_builder.h"

namespace torch_lazy::codegen {

// One kernel, or the two of a long reduction to a single point.
std::vector<LoweredKernel> choose_loops(Draft draft, const LowerContext& context);

}  // namespace torch_lazy::codegen
