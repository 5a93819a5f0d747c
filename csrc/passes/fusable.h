// What a kernel can compute.
#pragma once

#include "passes/core_graph.h"
#include "passes/core_operators.h"

namespace torch_lazy {

// Whether a kernel can compute nodes of this kind.
bool is_fusable(CoreKind kind);
// The core operator that a node calls, null where no kernel computes it.
const CoreOperator* fusable_operator(const torch::jit::Node* node);

}  // namespace torch_lazy
