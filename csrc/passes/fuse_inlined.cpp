#include "passes/fuse_inlined.h"

#include <algorithm>

#include "passes/fusable.h"
#include "passes/layout.h"

namespace torch_lazy {
namespace {

class Inliner {
 public:
  explicit Inliner(const CoreGraph& graph) : graph_(graph) {}

  bool may_inline(NodeId id) const {
    const CoreNode& made = node(id);
    if (made.kind == CoreKind::kArange || made.kind == CoreKind::kFill)
      return is_read_by_kernels_only(made.outputs[0], made.kind == CoreKind::kArange);
    if (made.computed_by_readers) return true;
    if (made.kind != CoreKind::kPointwise && made.kind != CoreKind::kCopy) return false;
    const CoreValue& result = value(made.outputs[0]);
    if (!is_dense(result.sizes, result.strides)) return false;
    int64_t read = 0;
    for (const NodeId user : result.users) {
      if (user == kNoId || node(user).kind != CoreKind::kView) return false;
      const CoreValue& slice = value(node(user).outputs[0]);
      for (const NodeId reader : slice.users) {
        if (!is_read_by_kernel(reader, true)) return false;
        read += slice.numel();
      }
    }
    if (read == 0 || read > result.numel()) return false;
    // A view that is the whole of it is better fused than computed at another index.
    for (const NodeId user : result.users)
      if (value(node(user).outputs[0]).numel() == result.numel()) return false;
    for (const ValueId input : made.inputs) {
      const NodeId producer = value(input).producer;
      if (producer == kNoId) continue;
      const CoreKind kind = node(producer).kind;
      if (is_fusable(kind)) return false;  // its own producers would have to be stored for it
    }
    return true;
  }

 private:
  const CoreNode& node(NodeId id) const { return graph_.nodes[size_t(id)]; }
  const CoreValue& value(ValueId id) const { return graph_.values[size_t(id)]; }

  // A join reads views at indices that are not theirs.
  bool is_read_by_kernel(NodeId reader, bool through_view) const {
    if (reader == kNoId || node(reader).kind == CoreKind::kGather) return false;
    const bool joins = node(reader).kind == CoreKind::kJoin || node(reader).computed_by_readers;
    return is_fusable(node(reader).kind) && !(through_view && joins);
  }

  // An element of a range is computed of an index that only the kernel knows; an index is looked at
  // in memory.
  bool gathers_of(ValueId range, NodeId reader) const {
    return reader != kNoId && node(reader).kind == CoreKind::kGather &&
           graph_.base_of(node(reader).inputs[0]) == range &&
           graph_.base_of(node(reader).inputs[1]) != range;
  }

  // Also through views.
  bool is_read_by_kernels_only(ValueId made, bool is_range) const {
    const auto may_read = [&](NodeId reader, bool through_view) {
      return is_read_by_kernel(reader, through_view) || (is_range && gathers_of(made, reader));
    };
    const std::vector<NodeId>& users = value(made).users;
    return std::all_of(users.begin(), users.end(), [&](NodeId user) {
      if (user == kNoId || node(user).kind != CoreKind::kView) return may_read(user, false);
      const std::vector<NodeId>& readers = value(node(user).outputs[0]).users;
      return std::all_of(readers.begin(), readers.end(),
                         [&](NodeId reader) { return may_read(reader, true); });
    });
  }

  const CoreGraph& graph_;
};

}  // namespace

std::vector<bool> choose_inlined(const CoreGraph& graph) {
  const Inliner inliner(graph);
  std::vector<bool> inlined(graph.nodes.size());
  for (size_t id = 0; id < inlined.size(); ++id) inlined[id] = inliner.may_inline(NodeId(id));
  return inlined;
}

}  // namespace torch_lazy
