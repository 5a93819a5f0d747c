// A set of nodes that becomes one kernel.
#pragma once

#include <vector>

#include "graph/core_graph.h"

namespace torch_lazy {

// Every value that a node of the group makes has, size-1 dimensions apart, either the sizes of the
// domain (it varies along all of it) or those of the domain's kept dimensions (it is, or goes with,
// the result of a reduction).
struct FusionGroup {
  std::vector<NodeId> nodes;    // in the graph's order; views and numbers are no members
  std::vector<NodeId> inlined;  // cheap nodes computed again here at whatever index they are read
  Extents domain;               // sizes, without dimensions of size 1
  std::vector<bool> reduced;    // by dimension of the domain; all false where nothing is reduced
  std::vector<ValueId> stored;  // values that somebody outside reads: what the kernel stores
};

}  // namespace torch_lazy
