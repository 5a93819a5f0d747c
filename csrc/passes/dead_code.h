// Removes nodes that nothing reads.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <functional>
#include <vector>

namespace torch_lazy {

// Removes what nothing reads, where `removable` says that it does nothing else. An unpacking goes
// with the node whose list it is: how many elements a list has tells which of a call's results the
// next one is.
void remove_dead_code(torch::jit::Graph& graph,
                      const std::function<bool(const torch::jit::Node&)>& removable);

// Destroys those of the nodes that nothing reads, the last of them first.
void destroy_unused(const std::vector<torch::jit::Node*>& nodes);

}  // namespace torch_lazy
