// Checks what every part of the project relies on in a window's graph.
#pragma once

namespace torch::jit {
struct Graph;
}

namespace torch_lazy {

// Raises, naming the node and the line that recorded it, unless
//  - the graph is well formed: values are defined before they are used (TorchScript's lint);
//  - it is straight: no node has blocks;
//  - every node is an operator the dispatcher knows, or one of the kinds graph_from_tape lists;
//  - every tensor has a complete type or is marked undefined;
//  - graph outputs are tensors.
// Takes a few microseconds a node.
void verify_graph(const torch::jit::Graph& graph);

}  // namespace torch_lazy
