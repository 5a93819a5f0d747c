#include "plan/few_long_rows.h"

#include <algorithm>
#include <set>
#include <vector>

namespace torch_lazy {
namespace {

// Most devices have a hundred multiprocessors or more: so few blocks leave them idle.
constexpr int64_t kFewWorkItems = 32;
// Each waits for memory, about half a microsecond. Starting another kernel takes some of these.
constexpr int64_t kManySteps = 32;

// In a sweep, that a thread makes one after the other.
int64_t steps_of_thread(const codegen::LoweredKernel& lowered) {
  const codegen::ThreadLoop& loop = lowered.kernel.thread_loop;
  const bool along_rows = lowered.kernel.axis == codegen::Axis::kReduction;
  const int64_t threads = along_rows ? codegen::ThreadLoop::kMostThreads : loop.rows;
  return lowered.reduction_steps() / (threads * loop.packet * loop.packets);
}

}  // namespace

NodeId first_behind_few_long_rows(const CoreGraph& graph, const FusionGroup& group,
                                  const codegen::LoweredKernel& kernel) {
  const codegen::ThreadLoop& loop = kernel.kernel.thread_loop;
  const bool read_once = loop.holds_row && !loop.has_rest;
  if (read_once || kernel.work_items > kFewWorkItems || steps_of_thread(kernel) < kManySteps)
    return kNoId;
  std::vector<NodeId> nodes = group.inlined;
  nodes.insert(nodes.end(), group.nodes.begin(), group.nodes.end());
  std::ranges::sort(nodes);
  std::set<ValueId> reduced;  // with what follows
  for (const NodeId id : nodes) {
    const CoreNode& node = graph.nodes[size_t(id)];
    const bool is_member = std::ranges::binary_search(group.nodes, id);
    const bool is_behind = std::ranges::any_of(
        node.inputs, [&](ValueId input) { return reduced.contains(graph.base_of(input)); });
    const Space space = space_of(graph, node);
    const bool along_rows = space.reduces || space.sizes == group.domain;
    if (is_behind && is_member && along_rows) return id;
    if (is_behind || (is_member && space.reduces))
      reduced.insert(node.outputs.begin(), node.outputs.end());
  }
  return kNoId;
}

}  // namespace torch_lazy
