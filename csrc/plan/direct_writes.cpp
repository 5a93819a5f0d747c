#include "plan/direct_writes.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "plan/kernel_memory.h"

namespace torch_lazy {
namespace {

class DirectWrites {
 public:
  DirectWrites(const CoreGraph& graph, const std::vector<GraphInput>& inputs,
               const std::vector<FusedItem>& items, BufferAssignment& assignment)
      : graph_(graph), inputs_(inputs), items_(items), assignment_(assignment) {}

  void run() {
    find_writes();
    if (memories_.empty()) return;
    find_reads();
    for (size_t id = 0; id < graph_.values.size(); ++id)
      if (assignment_.root(ValueId(id)) != ValueId(id))
        roots_of_others_.insert(assignment_.root(ValueId(id)));
    for (auto& [number, memory] : memories_) {
      if (memory.writes.size() > kMostWritesCompared || memory.of_several_dtypes) continue;
      for (size_t i = 0; i < memory.writes.size(); ++i) try_to_move(memory, i);
    }
  }

 private:
  struct Write {
    NodeId scatter;
    int64_t item;
    Layout region;
  };
  struct Read {
    int64_t item;
    Layout region;
  };
  // Regions count from the start of an input's storage, else from the root's first element.
  struct Memory {
    c10::ScalarType dtype = c10::ScalarType::Undefined;
    std::vector<Write> writes;  // in the order they happen
    std::vector<Read> reads;
    bool of_several_dtypes = false;  // whose regions cannot be compared
  };

  const CoreNode& node(NodeId id) const { return graph_.nodes[size_t(id)]; }
  const CoreValue& value(ValueId id) const { return graph_.values[size_t(id)]; }

  bool is_in_place(NodeId id) const {
    const CoreNode& made = node(id);
    return made.kind == CoreKind::kScatter && assignment_.root(made.outputs[0]) != made.outputs[0];
  }

  Memory* memory_of_value(ValueId id) {
    const auto found = memories_.find(memory_of(graph_, inputs_, assignment_, graph_.base_of(id)));
    return found == memories_.end() ? nullptr : &found->second;
  }

  void find_writes() {
    for (size_t i = 0; i < items_.size(); ++i) {
      const auto* id = std::get_if<NodeId>(&items_[i]);
      if (!id || !is_in_place(*id)) continue;
      const CoreNode& scatter = node(*id);
      const ValueId made = scatter.outputs[0];
      Layout region = scatter.layout;
      if (value(graph_.base_of(scatter.inputs[0])).producer != kNoId)
        region.offset += region_of(graph_, inputs_, assignment_, made).offset;
      Memory& memory = memories_[memory_of(graph_, inputs_, assignment_, made)];
      memory.dtype = value(made).dtype;
      memory.writes.push_back({*id, int64_t(i), std::move(region)});
    }
  }

  void find_reads() {
    made_by_.assign(graph_.values.size(), kNoId);
    stored_.assign(graph_.values.size(), false);
    for (size_t i = 0; i < items_.size(); ++i) {
      const auto* group = std::get_if<FusionGroup>(&items_[i]);
      if (!group) {
        add_node(std::get<NodeId>(items_[i]), int64_t(i));
        continue;
      }
      for (const NodeId id : group->nodes) add_node(id, int64_t(i));
      for (const NodeId id : group->inlined) add_node(id, int64_t(i));
      for (const ValueId id : group->stored) {
        made_by_[size_t(id)] = int64_t(i);
        stored_[size_t(id)] = true;
      }
    }
  }

  void add_node(NodeId id, int64_t item) {
    const CoreNode& reader = node(id);
    if (reader.fails_on_data || reader.kind == CoreKind::kGather) last_failing_ = item;
    const bool last = reader.kind == CoreKind::kMutation;  // copies come last of all
    const bool in_place = is_in_place(id);
    for (size_t i = 0; i < reader.inputs.size(); ++i) {
      // What is written to is not read.
      if ((in_place || last) && i == 0) continue;
      if (last && assignment_.written_in_place.count(id)) continue;
      const ValueId read = reader.inputs[i];
      const int64_t when = last ? int64_t(items_.size()) : item;
      if (graph_.base_of(read) == read) readers_[read].emplace_back(id, when);
      if (Memory* const memory = memory_of_value(read)) {
        memory->reads.push_back({when, region_of(graph_, inputs_, assignment_, read)});
        memory->of_several_dtypes |= value(read).dtype != memory->dtype;
      }
    }
    for (const ValueId made : reader.outputs)
      if (made_by_[size_t(made)] == kNoId) made_by_[size_t(made)] = item;
  }

  void try_to_move(Memory& memory, size_t index) {
    const Write& write = memory.writes[index];
    const ValueId made = node(write.scatter).outputs[0], source = node(write.scatter).inputs[1];
    const ValueId root = assignment_.root(made);
    if (!may_lie_elsewhere(source) || value(source).dtype != memory.dtype ||
        value(source).sizes != c10::IntArrayRef(write.region.sizes))
      return;
    const int64_t early = made_by_[size_t(source)];
    if (value(root).producer == kNoId ? early <= last_failing_ : made_by_[size_t(root)] >= early)
      return;
    if (!may_be_read_there(source, write, early)) return;
    std::vector<int64_t> readers;  // in the memory that it is written to
    for (const auto& [reader, item] : readers_[source])
      if (reader != write.scatter) readers.push_back(item);
    for (size_t i = 0; i < memory.writes.size(); ++i) {
      const Write& other = memory.writes[i];
      const bool passed = i < index && other.item >= early;
      const bool on_top = i > index && std::ranges::any_of(readers, [&](int64_t reader) {
                            return reader >= other.item;
                          });
      if ((passed || on_top) && !disjoint(other.region, write.region)) return;
    }
    for (const Read& read : memory.reads)
      if (read.item > early && read.item <= write.item && !disjoint(read.region, write.region))
        return;
    for (const int64_t reader : readers) memory.reads.push_back({reader, write.region});
    Layout layout = write.region;
    layout.offset -= first_element_of(graph_, inputs_, assignment_, made);
    assignment_.roots[size_t(source)] = root;
    assignment_.layouts[size_t(source)] = std::move(layout);
    assignment_.written_early.insert(write.scatter);
  }

  // Library calls are given the strides that the value's type says; kernels read vectors where
  // neighbours in memory of its own are neighbours there.
  bool may_be_read_there(ValueId source, const Write& write, int64_t early) {
    const CoreValue& own = value(source);
    bool same = true, same_rows = true;
    for (size_t d = 0; d < own.sizes.size(); ++d) {
      if (own.sizes[d] == 1) continue;
      same &= write.region.strides[d] == own.strides[d];
      same_rows &= own.strides[d] != 1 || write.region.strides[d] == 1;
    }
    return same || std::ranges::all_of(readers_[source], [&](const auto& reader) {
             const auto [id, item] = reader;
             if (id == write.scatter || item == early) return true;
             return same_rows && node(id).kind != CoreKind::kLibrary;
           });
  }

  // A kernel makes it, for others who read it as a whole and with their own indices.
  bool may_lie_elsewhere(ValueId id) const {
    return stored_[size_t(id)] && assignment_.root(id) == id && roots_of_others_.count(id) == 0 &&
           std::ranges::all_of(value(id).users, [&](NodeId user) {
             return user != kNoId && node(user).kind != CoreKind::kView;
           });
  }

  const CoreGraph& graph_;
  const std::vector<GraphInput>& inputs_;
  const std::vector<FusedItem>& items_;
  BufferAssignment& assignment_;
  std::map<int64_t, Memory> memories_;  // by number; in order, as a source is moved to one of them
  std::vector<int64_t> made_by_;        // by value: an item
  std::vector<bool> stored_;            // by value: by a kernel
  // By value that is no view: the nodes and items that read it.
  std::unordered_map<ValueId, std::vector<std::pair<NodeId, int64_t>>> readers_;
  std::unordered_set<ValueId> roots_of_others_;
  int64_t last_failing_ = -1;
};

}  // namespace

void assign_direct_writes(const CoreGraph& graph, const std::vector<GraphInput>& inputs,
                          const std::vector<FusedItem>& items, BufferAssignment& assignment) {
  DirectWrites(graph, inputs, items, assignment).run();
}

}  // namespace torch_lazy
