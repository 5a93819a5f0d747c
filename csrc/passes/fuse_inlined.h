// Which nodes are computed by their readers instead of stored.
#pragma once

#include <vector>

#include "passes/core_graph.h"

namespace torch_lazy {

// By node. What is made of the index alone is cheaper rematerialized than read. Of other nodes
// every element is read at most once, through slices of it, by nodes that a kernel computes.
std::vector<bool> choose_inlined(const CoreGraph& graph);

}  // namespace torch_lazy
