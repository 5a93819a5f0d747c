// What a kernel can compute.
#pragma once

#include "passes/core_graph.h"
#include "passes/core_operators.h"

namespace torch_lazy {

// Whether a kernel can compute nodes of this kind.
bool is_fusable(CoreKind kind);
// The core operator that a node calls, null where no kernel computes it.
const CoreOperator* fusable_operator(const torch::jit::Node* node);
// Whether a kernel will compute the node, where the backend has any: an operator that one can
// compute, of dtypes that kernels have, that has not been left to the library and cannot raise.
bool is_for_kernels(const torch::jit::Node& node);

}  // namespace torch_lazy
