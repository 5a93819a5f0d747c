// Graphs as pictures: DOT source for graphviz.
#pragma once

#include <string>

#include "base/api.h"

namespace torch::jit {
struct Graph;
}

namespace torch_lazy {

// Operators are boxes with their constant arguments and the line that recorded them; edges carry
// dtype and shape. Inputs are blue, outputs green, operators that write an argument amber, views
// grey.
TORCH_LAZY_MODULE_API std::string draw_graph(const torch::jit::Graph& graph);

}  // namespace torch_lazy
