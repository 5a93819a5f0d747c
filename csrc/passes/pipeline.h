// The passes in their order, for every backend that generates kernels.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "base/api.h"
#include "passes/core_graph.h"

namespace torch_lazy {

using GraphPass =
    std::function<std::shared_ptr<torch::jit::Graph>(std::shared_ptr<torch::jit::Graph>)>;

// From a window's graph as recorded to core operators, functional and simplified. The graph given
// is not changed. `of_backend` is a pass of the backend's own over core operators that runs last;
// it may be empty. `library_operations`: see CompileOptions. Raises, naming the operator, for what
// has no functional form; and, where verifies_passes() (base/debug.h), naming the pass after which
// the graph breaks the form.
TORCH_LAZY_API CoreGraph core_graph_of(const torch::jit::Graph& recorded,
                                       const std::vector<GraphInput>& inputs,
                                       const GraphPass& of_backend = {},
                                       const std::vector<int64_t>& library_operations = {});

}  // namespace torch_lazy
