#include "plan/lower_items.h"

#include <c10/util/Exception.h>

#include <optional>
#include <unordered_set>
#include <utility>

#include "base/pass_times.h"
#include "passes/rematerialize.h"
#include "plan/direct_writes.h"
#include "plan/few_long_rows.h"
#include "plan/scalar_epilogue.h"
#include "plan/write_conflicts.h"

namespace torch_lazy {
namespace {

using codegen::BufferBinding;
using codegen::LoweredKernel;

class ItemLowering {
 public:
  ItemLowering(const CoreGraph& graph, const std::vector<GraphInput>& inputs,
               const PlanOptions& options)
      : graph_(graph), inputs_(inputs), options_(options) {
    for (const GraphInput& input : inputs) offsets_.push_back(input.offset);
  }

  // An assignment is a guess until the kernels are known: one whose kernel reads the old content at
  // other elements than it writes is undone. A group is lowered again only where a value that it
  // touches has got another layout.
  LoweredItems run() {
    std::vector<Layout> layouts;
    for (const CoreValue& value : graph_.values) layouts.push_back({value.sizes, value.strides, 0});
    std::vector<FusedItem> fused = fuse_all();
    {
      const PassTimer timer("lower");
      for (FusedItem& item : fused) lower_first(layouts, std::move(item));
    }
    const PassTimer timer("assign buffers");
    fused.clear();
    for (const LoweredItem& lowered : items_) fused.push_back(lowered.item);
    buffer_assignment_ = assign_buffers(graph_, inputs_, fused);
    assign_direct_writes(graph_, inputs_, fused, buffer_assignment_);
    std::vector<ValueId> undone;
    do {
      std::vector<bool> laid_out_again(layouts.size());
      for (size_t id = 0; id < layouts.size(); ++id)
        laid_out_again[id] = !(layouts[id] == buffer_assignment_.layouts[id]);
      layouts = buffer_assignment_.layouts;
      undone.clear();
      for (LoweredItem& lowered : items_) {
        if (touches(lowered, laid_out_again)) lower_again(layouts, lowered);
        undo_conflicts(graph_, inputs_, lowered.kernels, buffer_assignment_, undone);
      }
    } while (!undone.empty());
    return {std::move(parts_), std::move(items_), std::move(buffer_assignment_)};
  }

 private:
  std::vector<FusedItem> fuse_all() {
    const PassTimer timer("fuse");
    if (options_.graphs) return by_parts();
    if (options_.operators) return one_by_one();
    return rematerialize(graph_, fuse(graph_, fuse_options()), options_.rematerialize_bytes);
  }

  FuseOptions fuse_options() const {
    FuseOptions made;
    if (options_.target != codegen::Target::Kind::kCuda) return made;
    // `threads` are multiprocessors; two blocks on each keep its memory busy.
    made.few_results_of_streamed_rows = int64_t{2} * options_.threads;
    made.longest_held_row = options_.shared_bytes / int64_t{sizeof(float)};
    return made;
  }

  std::vector<FusedItem> one_by_one() const {
    std::vector<FusedItem> items;
    for (size_t id = 0; id < graph_.nodes.size(); ++id) {
      const CoreKind kind = graph_.nodes[id].kind;
      if (kind != CoreKind::kNumber && kind != CoreKind::kView) items.emplace_back(NodeId(id));
    }
    return items;
  }

  std::vector<FusedItem> by_parts() {
    std::vector<FusedItem> items;
    for (CompiledItem& item : compile_parts(graph_, *options_.graphs, offsets_, options_.device)) {
      if (const auto* id = std::get_if<NodeId>(&item)) {
        items.emplace_back(*id);
        continue;
      }
      auto& compiled = std::get<CompiledPart>(item);
      items.insert(items.end(), compiled.part.nodes.begin(), compiled.part.nodes.end());
      parts_.push_back(std::move(compiled));
    }
    return items;
  }

  codegen::LowerContext context(const std::vector<Layout>& layouts) const {
    return {graph_,
            layouts,
            offsets_,
            options_.lanes,
            options_.threads,
            options_.target,
            options_.shared_bytes};
  }

  static bool touches(const LoweredItem& lowered, const std::vector<bool>& values) {
    for (const LoweredKernel& kernel : lowered.kernels)
      for (const BufferBinding& binding : kernel.buffers)
        if (binding.value >= 0 && values[size_t(binding.value)]) return true;
    return false;
  }

  void lower_again(const std::vector<Layout>& layouts, LoweredItem& lowered) const {
    std::optional<codegen::LowerFailure> failure;
    lowered.kernels =
        codegen::lower(context(layouts), std::get<FusionGroup>(lowered.item), failure);
    TORCH_INTERNAL_ASSERT(!failure, "a group that could be lowered no longer can");
  }

  void run_by_itself(NodeId id) { items_.emplace_back().item = id; }

  // The node from which on the group is better another kernel's; kNoId: there is none.
  NodeId better_apart(const FusionGroup& group, const std::vector<LoweredKernel>& kernels) const {
    if (kernels.size() != 1) return kNoId;
    if (options_.target == codegen::Target::Kind::kCuda)
      return first_behind_few_long_rows(graph_, group, kernels[0]);
    const bool scalar = kernels[0].kernel.axis == codegen::Axis::kReduction;
    return scalar ? costly_scalar_epilogue(graph_, group, options_.lanes) : kNoId;
  }

  // Splits groups until each is a kernel or a single node.
  void lower_first(const std::vector<Layout>& layouts, FusedItem item) {
    auto* group = std::get_if<FusionGroup>(&item);
    if (!group) {
      items_.emplace_back().item = std::move(item);
      return;
    }
    std::optional<codegen::LowerFailure> failure;
    std::vector<LoweredKernel> kernels = codegen::lower(context(layouts), *group, failure);
    const NodeId apart = failure ? kNoId : better_apart(*group, kernels);
    if (apart != kNoId) {
      for (FusionGroup& part : split_before(graph_, *group, apart))
        lower_first(layouts, std::move(part));
    } else if (!failure) {
      items_.push_back({std::move(item), std::move(kernels)});
    } else if (group->nodes.size() == 1) {
      for (const NodeId inlined : group->inlined)
        if (made_for_library_.insert(inlined).second) run_by_itself(inlined);
      run_by_itself(group->nodes[0]);
    } else {
      const NodeId at = failure->node > group->nodes.front() ? failure->node : group->nodes.back();
      for (FusionGroup& part : split_before(graph_, *group, at))
        lower_first(layouts, std::move(part));
    }
  }

  const CoreGraph& graph_;
  const std::vector<GraphInput>& inputs_;
  const PlanOptions options_;
  std::vector<int64_t> offsets_;
  std::vector<CompiledPart> parts_;
  std::vector<LoweredItem> items_;
  BufferAssignment buffer_assignment_;
  std::unordered_set<NodeId> made_for_library_;  // inlined nodes that a library call reads
};

}  // namespace

LoweredItems lower_items(const CoreGraph& graph, const std::vector<GraphInput>& inputs,
                         const PlanOptions& options) {
  return ItemLowering(graph, inputs, options).run();
}

}  // namespace torch_lazy
