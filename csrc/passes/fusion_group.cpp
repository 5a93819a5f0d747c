#include "passes/fusion_group.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace torch_lazy {
namespace {

Extents without_ones(c10::ArrayRef<int64_t> sizes) {
  Extents result;
  for (const int64_t size : sizes)
    if (size != 1) result.push_back(size);
  return result;
}

// Of `stored`, what the whole group stored and what the part after it reads: others make the rest
// again.
void keep_stored(const CoreGraph& graph, const std::vector<ValueId>& whole,
                 const FusionGroup& after, std::vector<ValueId>& stored) {
  std::unordered_set<ValueId> kept(whole.begin(), whole.end());
  for (const auto* const nodes : {&after.nodes, &after.inlined})
    for (const NodeId id : *nodes)
      for (const ValueId input : graph.nodes[size_t(id)].inputs) kept.insert(graph.base_of(input));
  std::erase_if(stored, [&](ValueId value) { return kept.count(value) == 0; });
}

std::string name_of(const CoreGraph& graph, ValueId id) {
  const torch::jit::Value* value = graph.values[size_t(id)].value;
  return value ? value->debugName() : "number";
}

}  // namespace

Space space_of(const CoreGraph& graph, const CoreNode& node) {
  Space space;
  if (node.kind != CoreKind::kReduction && node.kind != CoreKind::kScan) {
    space.sizes = without_ones(graph.values[size_t(node.outputs[0])].sizes);
    return space;
  }
  const Extents& sizes = graph.values[size_t(node.inputs[0])].sizes;
  std::vector<bool> reduced(sizes.size());
  for (const int64_t d : node.dims) reduced[size_t(d)] = true;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 1) continue;
    space.sizes.push_back(sizes[d]);
    space.reduced.push_back(reduced[d]);
    space.reduces |= reduced[d];
  }
  return space;
}

void choose_stored(const CoreGraph& graph, FusionGroup& group) {
  std::unordered_set<NodeId> members(group.nodes.begin(), group.nodes.end());
  group.stored.clear();
  const auto read_outside = [&](auto&& self, ValueId id) -> bool {
    for (const NodeId user : graph.values[size_t(id)].users) {
      if (user == kNoId) return true;  // a graph output
      if (members.count(user)) continue;
      const CoreNode& reader = graph.nodes[size_t(user)];
      if (reader.kind != CoreKind::kView) return true;
      if (self(self, reader.outputs[0])) return true;
    }
    return false;
  };
  for (const NodeId id : group.nodes)
    for (const ValueId made : graph.nodes[size_t(id)].outputs)
      if (read_outside(read_outside, made)) group.stored.push_back(made);
}

bool can_fail(const CoreGraph& graph, const FusionGroup& group) {
  return std::any_of(group.nodes.begin(), group.nodes.end(),
                     [&](NodeId id) { return graph.nodes[size_t(id)].kind == CoreKind::kGather; });
}

std::vector<FusionGroup> split_before(const CoreGraph& graph, const FusionGroup& group,
                                      NodeId node) {
  const FusionGroup nothing{};
  std::vector<FusionGroup> parts(2, group);
  for (FusionGroup& part : parts) part.nodes.clear();
  for (const NodeId id : group.nodes) parts[id >= node].nodes.push_back(id);
  for (size_t i = parts.size(); i-- > 0;) {
    FusionGroup& part = parts[i];
    // The domain of what is left.
    bool first = true;
    for (const NodeId id : part.nodes) {
      const Space space = space_of(graph, graph.nodes[size_t(id)]);
      if (first || space.sizes.size() > part.domain.size() || space.reduces) {
        if (first || space.sizes.size() >= part.domain.size()) part.domain = space.sizes;
        if (first) part.reduced.assign(space.sizes.size(), false);
        if (space.reduces) part.reduced = space.reduced;
        part.reduced.resize(part.domain.size());
      }
      first = false;
    }
    choose_stored(graph, part);
    keep_stored(graph, group.stored, i == 0 ? parts[1] : nothing, part.stored);
    if (part.stored.empty() && !can_fail(graph, part)) part = {};
  }
  std::erase_if(parts, [](const FusionGroup& part) { return part.nodes.empty(); });
  return parts;
}

std::string to_string(const CoreGraph& graph, const std::vector<FusedItem>& items) {
  std::string text;
  for (const FusedItem& item : items) {
    if (const auto* node = std::get_if<NodeId>(&item)) {
      text += graph.nodes[size_t(*node)].node->kind().toQualString();
      for (const ValueId output : graph.nodes[size_t(*node)].outputs)
        text += " " + name_of(graph, output);
      text += "\n";
      continue;
    }
    const auto& group = std::get<FusionGroup>(item);
    text += "{";
    for (size_t i = 0; i < group.nodes.size(); ++i)
      text += (i ? ", " : "") + name_of(graph, graph.nodes[size_t(group.nodes[i])].outputs[0]);
    text += " | store";
    for (const ValueId stored : group.stored) text += " " + name_of(graph, stored);
    for (size_t i = 0; i < group.inlined.size(); ++i)
      text += (i ? " " : " | rematerialize ") +
              name_of(graph, graph.nodes[size_t(group.inlined[i])].outputs[0]);
    text += "} [";
    for (size_t d = 0; d < group.domain.size(); ++d)
      text += (d ? ", " : "") + std::to_string(group.domain[d]) + (group.reduced[d] ? "~" : "");
    text += "]\n";
  }
  return text;
}

}  // namespace torch_lazy
