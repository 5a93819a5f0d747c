// Rows that are too long and too few to be one GPU kernel's.
#pragma once

#include "codegen/lower.h"
#include "passes/fusion_group.h"

namespace torch_lazy {

// A block goes through a row by itself, so that a kernel with few of them leaves most of a GPU
// idle. A long reduction is cut for that reason (codegen/cut_reduction.h), unless something varies
// along the row behind it: a normalization over a whole tensor. The first node of the group that
// does, where it belongs into a kernel of its own; kNoId where rows are short enough, or many.
// `kernel`: the group's only one, for CUDA.
NodeId first_behind_few_long_rows(const CoreGraph& graph, const FusionGroup& group,
                                  const codegen::LoweredKernel& kernel);

}  // namespace torch_lazy
