// The first pass: a recorded graph without writes and without view operators.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "backend/backend.h"

namespace torch::jit {
struct Graph;
}

namespace torch_lazy {

// The form that README.md describes under "The form between the passes", from a graph as
// graph_from_tape makes it. Every node that computes has the attribute kOriginAttribute
// (graph_builder.h): the index, in the order of `recorded.nodes()`, of the node it stands for; for
// the mutation that is the last that wrote.
//
// Outputs are the contents of their storages at the end, each a value of its own. Nodes whose
// results without a reader are left out, unless they can fail because of data.
//
// Raises c10::Error, naming the operator and the line that recorded it, where there is no such
// form. Nearly linear in nodes.
std::shared_ptr<torch::jit::Graph> functionalize(const torch::jit::Graph& recorded,
                                                 const std::vector<GraphInput>& inputs);

}  // namespace torch_lazy
