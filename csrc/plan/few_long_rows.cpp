#include "plan/few_long_rows.h"

#include <algorithm>
#include <set>
#include <vector>

#include "codegen/cut_reduction.h"
#include "codegen/launch_shape.h"
#include "codegen/thread_loop.h"
#include "plan/kernel_bytes.h"

namespace torch_lazy {
namespace {

// Each waits for memory, about half a microsecond. Starting another kernel takes some of these.
constexpr int64_t kManySteps = 32;
// Of a block. A multiprocessor takes some thirty microseconds for them.
constexpr int64_t kManyBytes = int64_t{2} << 20;

// That share a work item.
int64_t threads_of_item(const codegen::LoweredKernel& lowered) {
  const codegen::Kernel& kernel = lowered.kernel;
  const codegen::ThreadLoop& loop = kernel.thread_loop;
  if (kernel.axis == codegen::Axis::kParallel) return int64_t{loop.rows} * loop.columns();
  if (loop.threads > 0) return loop.threads;
  return codegen::threads_of_long_row(codegen::elements_along_lanes(lowered));
}

// In a sweep, that a thread makes one after the other.
int64_t steps_of_thread(const codegen::LoweredKernel& lowered) {
  const codegen::ThreadLoop& loop = lowered.kernel.thread_loop;
  if (lowered.kernel.axis == codegen::Axis::kParallel) return lowered.reduction_steps() / loop.rows;
  // A long row may have no packet in registers.
  const int packets = loop.is_long_row()
                          ? std::max(loop.packets, codegen::ThreadLoop::kStreamedPackets)
                          : loop.packets;
  return lowered.reduction_steps() / (threads_of_item(lowered) * loop.packet * packets);
}

}  // namespace

NodeId first_behind_few_long_rows(const CoreGraph& graph, const FusionGroup& group,
                                  const codegen::LoweredKernel& kernel) {
  const codegen::ThreadLoop& loop = kernel.kernel.thread_loop;
  if (kernel.kernel.reduction.empty() || kernel.work_items == 0 ||
      kernel.work_items > codegen::kMostItemsToCut ||
      kernel.work_items * threads_of_item(kernel) > codegen::kDeviceThreads)
    return kNoId;
  const bool read_once = loop.holds_row && !loop.has_rest;
  const bool many_steps = !read_once && steps_of_thread(kernel) >= kManySteps;
  if (!many_steps && bytes_moved(kernel) < kManyBytes * kernel.work_items) return kNoId;
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
