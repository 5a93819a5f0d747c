// Cuts a core graph into parts that a compiler of graphs takes whole, and nodes that it does not
// take.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "passes/core_graph.h"

namespace torch_lazy {

struct GraphPart {
  // In the graph's order. Numbers and views are no members: a part makes for itself those it reads.
  std::vector<NodeId> nodes;
  std::vector<ValueId> inputs;   // read from outside; views that a part cannot make among them
  std::vector<ValueId> results;  // read by others; no views
};

using PartitionedItem = std::variant<GraphPart, NodeId>;

// What a compiler takes, asked once for every node that computes and for every view.
using TakesNode = std::function<bool(NodeId)>;

// Items in the order they run, which respects every dependency and no more: the nodes of a core
// graph have no effects but its results. A node is in the first part that can have it, so that the
// parts are as few, and as large, as what lies between them allows. Scatters and mutations, which
// are about memory, are in no part. Indices that are to be checked come from outside of the part.
std::vector<PartitionedItem> partition(const CoreGraph& graph, const TakesNode& takes);

// "part {mul_3, add_4 | from x, w | makes add_4}" or "sort_5", one line an item, for tests and
// dumps.
std::string to_string(const CoreGraph& graph, const std::vector<PartitionedItem>& items);

}  // namespace torch_lazy
