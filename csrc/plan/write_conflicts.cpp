#include "plan/write_conflicts.h"

#include <algorithm>
#include <optional>

#include "plan/kernel_memory.h"

namespace torch_lazy {

using codegen::BufferBinding;
using codegen::LoweredKernel;

namespace {

// What an access of a kernel reaches: sizes and strides by dimension of the kernel, the offset from
// the start of the input's storage, else from the root's first element. None of indirect ones.
std::optional<Layout> reach_of(const codegen::Access& access, const LoweredKernel& lowered,
                               int64_t offset) {
  if (!access.indirect.empty()) return std::nullopt;
  const codegen::Kernel& kernel = lowered.kernel;
  Layout reach;
  reach.offset = lowered.number(access.offset) + offset;
  for (const codegen::Size& extent : kernel.parallel) reach.sizes.push_back(lowered.number(extent));
  for (const codegen::Size& extent : kernel.reduction)
    reach.sizes.push_back(lowered.number(extent));
  for (const codegen::Size& stride : access.strides)
    reach.strides.push_back(lowered.number(stride));
  return reach;
}

// The same elements, by strides that are not negative.
Layout ascending(Layout reach) {
  for (size_t d = 0; d < reach.sizes.size(); ++d) {
    if (reach.strides[d] >= 0) continue;
    reach.offset += (reach.sizes[d] - 1) * reach.strides[d];
    reach.strides[d] = -reach.strides[d];
  }
  return reach;
}

// Chunks of a long reduction reach more than the extents say.
bool is_chunked(const codegen::Kernel& kernel) {
  return kernel.reduction_total.slot || kernel.reduction_total.value != 0;
}

}  // namespace

void undo_conflicts(const CoreGraph& graph, const std::vector<GraphInput>& inputs,
                    const std::vector<LoweredKernel>& kernels, BufferAssignment& assignment,
                    std::vector<ValueId>& undone) {
  const auto reach = [&](const codegen::Access& access, const LoweredKernel& kernel, ValueId id) {
    return reach_of(access, kernel, first_element_of(graph, inputs, assignment, id));
  };
  std::vector<ValueId> conflicts;
  for (const LoweredKernel& writer : kernels)
    for (const codegen::Store& store : writer.kernel.stores) {
      const ValueId written = writer.buffers[store.buffer].value;
      if (written < 0 || assignment.root(written) == written) continue;
      const bool early = std::ranges::any_of(graph.values[size_t(written)].users, [&](NodeId user) {
        return assignment.written_early.count(user) > 0 &&
               graph.nodes[size_t(user)].inputs[1] == written;
      });
      if (!early && graph.values[size_t(assignment.root(written))].input == kNoId)
        continue;  // a piece of a cat, which nobody reads yet
      const int64_t memory = memory_of(graph, inputs, assignment, written);
      const auto stored = reach(store.access, writer, written);
      for (const LoweredKernel& reader : kernels)
        for (const codegen::Expr& expr : reader.kernel.exprs) {
          if (expr.op != codegen::Op::kLoad) continue;
          const ValueId read = reader.buffers[expr.buffer].value;
          if (read < 0 || memory_of(graph, inputs, assignment, read) != memory) continue;
          const auto loaded = reach(expr.access, reader, read);
          const bool comparable =
              loaded && stored &&
              graph.values[size_t(read)].dtype == graph.values[size_t(written)].dtype;
          const bool same_element = comparable && &reader == &writer && loaded == stored;
          const bool apart = comparable && !is_chunked(reader.kernel) &&
                             !is_chunked(writer.kernel) &&
                             disjoint(ascending(*loaded), ascending(*stored));
          if (!same_element && !apart) conflicts.push_back(written);
        }
    }
  for (const ValueId id : conflicts) {
    const CoreValue& value = graph.values[size_t(id)];
    if (assignment.root(id) == id) continue;
    assignment.roots[size_t(id)] = id;
    assignment.layouts[size_t(id)] = {value.sizes, value.strides, 0};
    for (const NodeId user : value.users) {
      if (user == kNoId) continue;
      assignment.written_in_place.erase(user);
      assignment.written_early.erase(user);
    }
    undone.push_back(id);
  }
}

}  // namespace torch_lazy
