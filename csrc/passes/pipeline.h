// The passes in their order, for every backend that generates kernels.
#pragma once

#include <memory>
#include <vector>

#include "backend/backend.h"
#include "passes/core_graph.h"

namespace torch_lazy {

// From a window's graph as recorded to core operators, functional and simplified. The graph given
// is not changed. `onednn`: oneDNN multiplies large matrices. Raises, naming the operator, for what
// has no functional form.
CoreGraph core_graph_of(const torch::jit::Graph& recorded, const std::vector<GraphInput>& inputs,
                        bool onednn);

}  // namespace torch_lazy
