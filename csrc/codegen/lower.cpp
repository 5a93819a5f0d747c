#include "codegen/lower.h"

#include <unordered_set>

#include "codegen/choose_loops.h"
#include "codegen/expression_builder.h"
#include "ir/print.h"

namespace torch_lazy::codegen {
namespace {

constexpr size_t kNamedOperators = 5;
constexpr size_t kNamedLines = 12;

// "mul_add_gelu": what the group computes, for dumps and profiles.
std::string name_of_group(const CoreGraph& graph, const FusionGroup& group) {
  std::string name = "kernel";
  for (size_t i = 0; i < group.nodes.size() && i < kNamedOperators; ++i) {
    const CoreNode& node = graph.nodes[size_t(group.nodes[i])];
    name += "_";
    for (const char* c = node.node->kind().toUnqualString(); *c; ++c)
      if (*c != '_') name += *c;
  }
  if (group.nodes.size() > kNamedOperators) name += "_etc";
  return name;
}

std::vector<std::string> comments_of_group(const CoreGraph& graph, const FusionGroup& group) {
  std::vector<std::string> lines;
  std::unordered_set<std::string> seen;
  for (const NodeId id : group.nodes) {
    const CoreNode& node = graph.nodes[size_t(id)];
    const std::string where = recorded_at(*node.node);
    if (where.empty() || !seen.insert(where).second) continue;
    lines.push_back(std::string(node.node->kind().toQualString()) + " " + where);
    if (lines.size() == kNamedLines) break;
  }
  return lines;
}

}  // namespace

std::vector<LoweredKernel> lower(const LowerContext& context, const FusionGroup& group,
                                 std::optional<LowerFailure>& failure) {
  Draft draft;
  failure = build_expressions(context, group, draft);
  if (failure || group.stored.empty()) return {};
  std::vector<LoweredKernel> kernels = choose_loops(std::move(draft), context);
  const std::string name = name_of_group(context.graph, group);
  for (size_t i = 0; i < kernels.size(); ++i) {
    kernels[i].kernel.name = i == 0 ? name : name + "_combine";
    kernels[i].kernel.comments = comments_of_group(context.graph, group);
  }
  return kernels;
}

}  // namespace torch_lazy::codegen
