// The TorchScript graph of a part, as a compiler of graphs is given it.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <memory>
#include <vector>

#include "passes/named_views.h"
#include "passes/partition.h"

namespace torch_lazy {

// How a part makes a view of its base; none where it cannot. `input_offsets`: the storage offset,
// in elements, of each graph input.
std::optional<std::vector<NamedView>> views_in_part(const CoreGraph& graph, NodeId view,
                                                    const std::vector<int64_t>& input_offsets);

// Its inputs and outputs are the part's inputs and results, in order; its nodes are core operators
// and those left whole, views in named operators in place of as_strided. Every tensor has a
// complete type; of values that are neither inputs nor outputs the strides mean nothing.
std::shared_ptr<torch::jit::Graph> graph_of_part(const CoreGraph& graph, const GraphPart& part,
                                                 const std::vector<int64_t>& input_offsets);

}  // namespace torch_lazy
