// Gathers before the pointwise operators whose results they read.
#pragma once

#include "passes/graph_builder.h"

namespace torch_lazy {

// For `gather` or `index_select` of a few elements of what pointwise operators make: the elements
// of what these operators read, and the operators on them. So a loss does not keep in memory what
// it looks at in one place of each row. Null for other nodes, where an operand would have to go to
// memory to be gathered, and where as much would be computed again as is left out.
// What is made goes before the node.
torch::jit::Value* gather_of_operands(GraphBuilder& builder, torch::jit::Node* node);
// Whether the gather takes so few elements of its source that these are worth computing again.
bool takes_few_elements(const torch::jit::Node& gather);

}  // namespace torch_lazy
