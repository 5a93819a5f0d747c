// What a graph's fused items became: kernels in the loop IR, nodes that run by themselves, and the
// memory that their values lie in. The first half of planning.
#pragma once

#include <vector>

#include "codegen/lower.h"
#include "passes/fuse.h"
#include "plan/buffer_assignment.h"
#include "plan/graph_parts.h"
#include "plan/make_plan.h"

namespace torch_lazy {

struct LoweredItem {
  FusedItem item;
  std::vector<codegen::LoweredKernel> kernels;  // of a group
};

struct LoweredItems {
  // Of a compiler of graphs; their nodes are items by themselves, one after the other.
  std::vector<CompiledPart> parts;
  std::vector<LoweredItem> items;  // in the order they run
  BufferAssignment buffer_assignment;
};

// Groups that cannot be a kernel are split, down to nodes for library calls.
LoweredItems lower_items(const CoreGraph& graph, const std::vector<GraphInput>& inputs,
                         const PlanOptions& options);

}  // namespace torch_lazy
