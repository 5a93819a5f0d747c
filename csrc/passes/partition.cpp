#include "passes/partition.h"

#include <algorithm>
#include <map>
#include <sstream>

namespace torch_lazy {
namespace {

// The stages of a run: nodes by themselves of stage i run before part i, and after part i - 1.
class Partitioner {
 public:
  Partitioner(const CoreGraph& graph, const TakesNode& takes)
      : graph_(graph), takes_(takes), stages_(graph.nodes.size()), in_part_(graph.nodes.size()) {}

  std::vector<PartitionedItem> run() {
    for (size_t id = 0; id < graph_.nodes.size(); ++id) place(NodeId(id));
    std::map<size_t, std::vector<NodeId>> alone;
    std::map<size_t, GraphPart> parts;
    for (size_t id = 0; id < graph_.nodes.size(); ++id) {
      if (is_made_where_read(node(NodeId(id)))) continue;
      if (in_part_[id])
        parts[stages_[id]].nodes.push_back(NodeId(id));
      else
        alone[stages_[id]].push_back(NodeId(id));
    }
    std::vector<PartitionedItem> items;
    const size_t last = std::max(parts.empty() ? 0 : parts.rbegin()->first,
                                 alone.empty() ? 0 : alone.rbegin()->first);
    for (size_t stage = 0; stage <= last; ++stage) {
      for (const NodeId id : alone[stage]) items.emplace_back(id);
      if (const auto part = parts.find(stage); part != parts.end()) {
        connect(part->second);
        items.emplace_back(std::move(part->second));
      }
    }
    return items;
  }

 private:
  const CoreNode& node(NodeId id) const { return graph_.nodes[size_t(id)]; }

  static bool is_made_where_read(const CoreNode& node) {
    return node.kind == CoreKind::kNumber || node.kind == CoreKind::kView;
  }

  bool takes(NodeId id) const {
    const CoreKind kind = node(id).kind;
    return kind != CoreKind::kScatter && kind != CoreKind::kMutation && takes_(id);
  }

  // The first stage in which something outside of parts may read the value.
  size_t stage_in_memory(ValueId id) const {
    const NodeId producer = graph_.values[size_t(graph_.base_of(id))].producer;
    if (producer == kNoId || node(producer).kind == CoreKind::kNumber) return 0;
    return stages_[size_t(producer)] + (in_part_[size_t(producer)] ? 1 : 0);
  }

  // The first stage in which a part may read it.
  size_t stage_in_part(ValueId id) const {
    const NodeId producer = graph_.values[size_t(id)].producer;
    if (producer != kNoId && node(producer).kind == CoreKind::kView && !in_part_[size_t(producer)])
      return stage_in_memory(id);
    const NodeId made = graph_.values[size_t(graph_.base_of(id))].producer;
    return made == kNoId ? 0 : stages_[size_t(made)];
  }

  // Of a view `in_part_` says whether parts can make it.
  void place(NodeId id) {
    const CoreNode& placed = node(id);
    size_t& stage = stages_[size_t(id)];
    if (placed.kind == CoreKind::kNumber) return;
    in_part_[size_t(id)] = takes(id);
    if (placed.kind == CoreKind::kView) return;
    for (size_t i = 0; i < placed.inputs.size(); ++i) {
      const bool checked = placed.kind == CoreKind::kGather && i == 1;
      const ValueId input = placed.inputs[i];
      stage = std::max(
          stage, in_part_[size_t(id)] && !checked ? stage_in_part(input) : stage_in_memory(input));
    }
  }

  // Finds what the part reads and what others read of it.
  void connect(GraphPart& part) const {
    const auto is_member = [&](NodeId id) {
      return std::binary_search(part.nodes.begin(), part.nodes.end(), id);
    };
    const auto add_once = [](std::vector<ValueId>& values, ValueId id) {
      if (std::find(values.begin(), values.end(), id) == values.end()) values.push_back(id);
    };
    for (const NodeId id : part.nodes)
      for (const ValueId input : node(id).inputs) {
        const ValueId read = outermost(input);
        const NodeId producer = graph_.values[size_t(read)].producer;
        if (producer != kNoId && (node(producer).kind == CoreKind::kNumber || is_member(producer)))
          continue;
        add_once(part.inputs, read);
      }
    for (const NodeId id : part.nodes)
      for (const ValueId output : node(id).outputs)
        if (is_read_outside(output, is_member)) add_once(part.results, output);
  }

  // What a part reads to have the value: its base, where it makes the view itself.
  ValueId outermost(ValueId id) const {
    const NodeId producer = graph_.values[size_t(id)].producer;
    const bool made =
        producer != kNoId && node(producer).kind == CoreKind::kView && in_part_[size_t(producer)];
    return made ? graph_.base_of(id) : id;
  }

  // By graph outputs, other items, or views that no part makes.
  template <typename IsMember>
  bool is_read_outside(ValueId id, const IsMember& is_member) const {
    const std::vector<NodeId>& users = graph_.values[size_t(id)].users;
    return std::any_of(users.begin(), users.end(), [&](NodeId user) {
      if (user == kNoId) return true;
      if (node(user).kind != CoreKind::kView) return !is_member(user);
      return !in_part_[size_t(user)] || is_read_outside(node(user).outputs[0], is_member);
    });
  }

  const CoreGraph& graph_;
  const TakesNode& takes_;
  std::vector<size_t> stages_;
  std::vector<bool> in_part_;
};

void append_names(std::ostream& stream, const char* title, const CoreGraph& graph,
                  const std::vector<ValueId>& values) {
  stream << title;
  for (size_t i = 0; i < values.size(); ++i)
    stream << (i ? ", " : "") << graph.values[size_t(values[i])].value->debugName();
}

}  // namespace

std::vector<PartitionedItem> partition(const CoreGraph& graph, const TakesNode& takes) {
  return Partitioner(graph, takes).run();
}

std::string to_string(const CoreGraph& graph, const std::vector<PartitionedItem>& items) {
  std::ostringstream stream;
  const auto name = [&](NodeId id) {
    const CoreNode& node = graph.nodes[size_t(id)];
    return node.outputs.empty() ? std::string(node.node->kind().toUnqualString())
                                : graph.values[size_t(node.outputs[0])].value->debugName();
  };
  for (const PartitionedItem& item : items) {
    if (const auto* id = std::get_if<NodeId>(&item)) {
      stream << name(*id) << "\n";
      continue;
    }
    const GraphPart& part = std::get<GraphPart>(item);
    stream << "part {";
    for (size_t i = 0; i < part.nodes.size(); ++i) stream << (i ? ", " : "") << name(part.nodes[i]);
    append_names(stream, " | from ", graph, part.inputs);
    append_names(stream, " | makes ", graph, part.results);
    stream << "}\n";
  }
  return stream.str();
}

}  // namespace torch_lazy
