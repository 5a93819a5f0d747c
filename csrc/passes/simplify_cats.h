// Pointwise operators go to the parts of a cat.
#pragma once

#include "passes/graph_builder.h"

namespace torch_lazy {

// The cat of what a pointwise operator makes of each part of a cat that it alone reads: kernels
// then make the parts of the result where they end up, and nothing has to be joined in between.
// Null where the operator reads no such cat, or where its other operands would have to be stored to
// be read part by part.
torch::jit::Value* cat_of_results(GraphBuilder& builder, torch::jit::Node* pointwise,
                                  size_t operands);

}  // namespace torch_lazy
