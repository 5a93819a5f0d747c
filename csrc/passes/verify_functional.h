// Checks the form of graphs between passes.
#pragma once

#include <vector>

#include "backend/backend.h"

namespace torch::jit {
struct Graph;
}  // namespace torch::jit

namespace torch_lazy {

// Raises, naming the node and the line that recorded it, unless the graph keeps what README.md
// says under "The form between the passes" (and what verify_graph checks):
//  - no operator draws random numbers, returns a view or writes an argument, but
//  - as_strided: with constant arguments, of a value that is no view itself, in its bounds, and
//  - copy_ at the end: to an input, or a part of one, from a value that a node made in memory of
//    its own, of the same dtype and sizes: simplify drops copies between layouts, and copying lays
//    out;
//  - as_strided_scatter has constant arguments, is in bounds, and writes no element twice;
//  - outputs are made by nodes in memory of their own, and none is returned twice; one may also be
//    what is written to an input, of which it is a copy then;
//  - nodes that compute say which recorded node they stand for.
void verify_functional(const torch::jit::Graph& graph, const std::vector<GraphInput>& inputs);

}  // namespace torch_lazy
