#include "plan/buffer_assignment.h"

#include <algorithm>
#include <unordered_map>

#include "plan/kernel_memory.h"

namespace torch_lazy {
namespace {

constexpr int kMostReadsCompared = 512;

class Assigner {
 public:
  Assigner(const CoreGraph& graph, const std::vector<GraphInput>& inputs,
           const std::vector<FusedItem>& items)
      : graph_(graph), inputs_(inputs), items_(items) {
    for (size_t id = 0; id < graph.values.size(); ++id) {
      result_.roots.push_back(ValueId(id));
      result_.layouts.push_back({graph.values[id].sizes, graph.values[id].strides, 0});
    }
  }

  BufferAssignment run() {
    find_positions();
    // Partial writes first, last one first, so that a chain that ends in a write-back is known.
    for (size_t id = graph_.nodes.size(); id-- > 0;)
      if (node(NodeId(id)).kind == CoreKind::kMutation) assign_write_back(NodeId(id));
    for (size_t id = 0; id < graph_.nodes.size(); ++id) {
      if (node(NodeId(id)).kind == CoreKind::kScatter) assign_scatter(NodeId(id));
      if (node(NodeId(id)).kind == CoreKind::kCat) assign_cat(NodeId(id));
    }
    return std::move(result_);
  }

 private:
  const CoreNode& node(NodeId id) const { return graph_.nodes[size_t(id)]; }
  const CoreValue& value(ValueId id) const { return graph_.values[size_t(id)]; }

  // ---- When things happen ----

  void find_positions() {
    position_.assign(graph_.nodes.size(), kNoId);
    in_kernel_.assign(graph_.values.size(), false);
    for (size_t i = 0; i < items_.size(); ++i) {
      std::vector<NodeId> nodes;
      if (const auto* group = std::get_if<FusionGroup>(&items_[i])) {
        nodes = group->nodes;
        nodes.insert(nodes.end(), group->inlined.begin(), group->inlined.end());
        for (const ValueId stored : group->stored) in_kernel_[size_t(stored)] = true;
      } else {
        nodes = {std::get<NodeId>(items_[i])};
      }
      for (const NodeId id : nodes) {
        if (node(id).fails_on_data || node(id).kind == CoreKind::kGather)
          last_failing_ = int64_t(i);
        if (node(id).kind == CoreKind::kMutation) {
          add_read(node(id).inputs[1], int64_t(items_.size()));  // copies come last of all
          continue;
        }
        position_[size_t(id)] = std::max(position_[size_t(id)], int32_t(i));
        for (const ValueId input : node(id).inputs) add_read(input, int64_t(i));
      }
    }
  }

  void add_read(ValueId id, int64_t item) {
    const ValueId base = graph_.base_of(id);
    if (value(base).producer != kNoId) return;
    reads_[inputs_[size_t(value(base).input)].storage].push_back({item, id});
  }

  // Whether an input over the storage of `input`, as it was before the window, is read behind the
  // item `when` where the window writes to `region`, which counts from the storage's start.
  bool is_read_after(ValueId input, const Layout& region, int64_t when) const {
    const auto found = reads_.find(inputs_[size_t(value(input).input)].storage);
    if (found == reads_.end()) return false;
    int compared = 0;
    return std::ranges::any_of(found->second, [&](const Read& read) {
      return read.item > when &&
             (compared++ == kMostReadsCompared || value(read.value).dtype != value(input).dtype ||
              !disjoint(in_storage(read.value), region));
    });
  }

  // Of an input or a view of one, from the storage's start.
  Layout in_storage(ValueId id) const {
    return torch_lazy::region_of(graph_, inputs_, result_, id);
  }

  // Every reader sees the value as a whole and with its own indices.
  bool can_move(ValueId id) const {
    if (result_.roots[size_t(id)] != id) return false;
    for (const NodeId user : value(id).users) {
      if (user == kNoId) return false;
      if (node(user).kind == CoreKind::kView) return false;
    }
    return true;
  }

  // ---- Write-backs ----

  // The region of the target, from the first element of the input it belongs to.
  Layout region_of(ValueId target) const {
    const NodeId producer = value(target).producer;
    if (producer == kNoId) return {value(target).sizes, value(target).strides, 0};
    Layout layout = node(producer).layout;
    layout.offset -= inputs_[size_t(value(node(producer).inputs[0]).input)].offset;
    return layout;
  }

  void assign_write_back(NodeId id) {
    const ValueId target = node(id).inputs[0], source = node(id).inputs[1];
    const ValueId input = graph_.base_of(target);
    const CoreValue& made = value(source);
    if (made.producer == kNoId || value(input).producer != kNoId) return;
    if (made.dtype != value(target).dtype || made.sizes != value(target).sizes) return;
    if (std::count(made.users.begin(), made.users.end(), kNoId)) return;
    const int64_t when = position_[size_t(made.producer)];
    if (when <= last_failing_ || result_.roots[size_t(source)] != source) return;
    const bool scatter =
        node(made.producer).kind == CoreKind::kScatter && starts_at(source, target);
    const bool kernel = in_kernel_[size_t(source)] && can_move(source) &&
                        !is_read_after(input, in_storage(target), when);
    if (!kernel && !scatter) return;
    assign_to(source, input, region_of(target));
    if (scatter) assign_chain(source, input, region_of(target));
    result_.written_in_place.insert(id);
  }

  void assign_to(ValueId id, ValueId root, const Layout& layout) {
    assigned_to_[root].push_back(id);
    result_.roots[size_t(id)] = root;
    result_.layouts[size_t(id)] = layout;
  }

  // One of a chain of partial writes: the item that does it and where it goes, from the first
  // element of the target.
  struct ChainWrite {
    int64_t when;
    Layout region;
  };

  // Whether a chain of partial writes begins with the target, each of which may go there at once:
  // nothing behind one reads what was there before.
  bool starts_at(ValueId made, ValueId target) const {
    std::vector<ChainWrite> writes;  // the last one first
    const ValueId input = graph_.base_of(target);
    const int64_t first = in_storage(target).offset;
    while (made != target && !same_region(made, target)) {
      const NodeId producer = value(made).producer;
      if (producer == kNoId || node(producer).kind != CoreKind::kScatter) return false;
      if (value(made).strides != value(target).strides || !is_read_before(made, writes))
        return false;
      const ValueId base = node(producer).inputs[0];
      const int64_t when = position_[size_t(producer)];
      Layout in_target = node(producer).layout, in_storage = in_target;
      if (value(graph_.base_of(base)).producer != kNoId)
        in_storage.offset += first;
      else
        in_target.offset -= first;
      if (when <= last_failing_ || is_read_after(input, in_storage, when)) return false;
      const ValueId source = node(producer).inputs[1];
      if (!apart(source, base) && !is_input_apart(source, input, in_storage)) return false;
      writes.push_back({when, in_target});
      made = base;
    }
    return !writes.empty();
  }

  // Whether all who read the value, or views of it, do so before any of the writes behind it, or
  // read other parts.
  bool is_read_before(ValueId made, const std::vector<ChainWrite>& writes) const {
    const Layout whole{value(made).sizes, value(made).strides, 0};
    return std::ranges::all_of(value(made).users, [&](NodeId user) {
      if (user == kNoId || node(user).kind != CoreKind::kView)
        return is_read_before(made, whole, user, writes);
      const ValueId view = node(user).outputs[0];
      return std::ranges::all_of(value(view).users, [&](NodeId reader) {
        return is_read_before(view, node(user).layout, reader, writes);
      });
    });
  }

  bool is_read_before(ValueId read, const Layout& layout, NodeId reader,
                      const std::vector<ChainWrite>& writes) const {
    if (reader == kNoId) return false;
    const bool last = node(reader).kind == CoreKind::kMutation;
    if (last && node(reader).inputs[1] != read) return true;  // it is the target
    const int64_t item = last ? int64_t(items_.size()) : position_[size_t(reader)];
    if (writes.empty() || item <= writes.back().when) return true;
    return writes.size() <= kMostWritesCompared &&
           std::ranges::all_of(writes, [&](const ChainWrite& write) {
             return item <= write.when || disjoint(layout, write.region);
           });
  }

  bool same_region(ValueId a, ValueId b) const {
    return graph_.base_of(a) == graph_.base_of(b) && value(graph_.base_of(a)).producer == kNoId &&
           region_of(a) == region_of(b) && value(a).dtype == value(b).dtype;
  }

  void assign_chain(ValueId made, ValueId input, const Layout& layout) {
    for (;;) {
      const NodeId producer = value(made).producer;
      if (producer == kNoId || node(producer).kind != CoreKind::kScatter) return;
      assign_to(made, input, layout);
      made = node(producer).inputs[0];
    }
  }

  // ---- Partial writes and cats of temporaries ----

  // All readers of the value, but `last`, have run before `last` does. Write-backs come after all
  // else; being the target of one is not reading.
  bool read_before(ValueId id, NodeId last) const {
    const auto before = [&](NodeId user, ValueId read) {
      if (user == kNoId) return false;
      if (user == last) return true;
      if (node(user).kind == CoreKind::kMutation) return node(user).inputs[1] != read;
      return position_[size_t(user)] < position_[size_t(last)];
    };
    for (const NodeId user : value(id).users) {
      if (user == kNoId) return false;
      if (node(user).kind != CoreKind::kView) {
        if (!before(user, id)) return false;
        continue;
      }
      const ValueId view = node(user).outputs[0];
      for (const NodeId reader : value(view).users)
        if (!before(reader, view)) return false;
    }
    return true;
  }

  // What is written does not lie in the memory that it is written to. Any input may, and any value
  // that partial writes made.
  bool apart(ValueId source, ValueId base) const {
    const ValueId owner = graph_.base_of(source);
    const NodeId producer = value(owner).producer;
    if (producer == kNoId || owner == graph_.base_of(base)) return false;
    return node(producer).kind != CoreKind::kScatter &&
           result_.root(owner) != result_.root(graph_.base_of(base));
  }

  // Of an input or a view of one, that it is not where the window writes to in another input.
  bool is_input_apart(ValueId source, ValueId written, const Layout& region) const {
    const CoreValue& owner = value(graph_.base_of(source));
    if (owner.producer != kNoId) return false;
    if (inputs_[size_t(owner.input)].storage != inputs_[size_t(value(written).input)].storage)
      return true;
    return owner.dtype == value(written).dtype && disjoint(in_storage(source), region);
  }

  void assign_scatter(NodeId id) {
    const ValueId made = node(id).outputs[0], base = node(id).inputs[0];
    if (result_.roots[size_t(made)] != made) return;
    // An input may be changed for its write-back only, which was looked at before.
    if (value(graph_.base_of(base)).producer == kNoId || graph_.base_of(base) != base) return;
    if (node(value(base).producer).kind == CoreKind::kNumber) return;
    // Another part of the same memory may have readers that only its own value knows of: a cat and
    // its pieces. Earlier links of a chain of partial writes are read before this one.
    const ValueId root = result_.roots[size_t(base)];
    const NodeId maker = value(base).producer;
    if (root != base && node(maker).kind != CoreKind::kScatter) return;
    if (value(root).producer == kNoId || result_.joined.count(value(root).producer)) return;
    if (value(made).strides != value(base).strides || !read_before(base, id)) return;
    // No input lies in memory of the plan's.
    const ValueId source = node(id).inputs[1];
    if (value(graph_.base_of(source)).producer != kNoId && !apart(source, base)) return;
    // The memory of an output has no other: the results of one call might share it.
    const auto& users = value(made).users;
    const NodeId owner = value(root).producer;
    if (std::count(users.begin(), users.end(), kNoId) && !in_kernel_[size_t(root)] &&
        node(owner).outputs.size() != 1)
      return;
    written_.insert(root);
    assign_to(made, root, result_.layouts[size_t(base)]);
  }

  void assign_cat(NodeId id) {
    const CoreNode& cat = node(id);
    const ValueId whole = cat.outputs[0];
    if (result_.roots[size_t(whole)] != whole) return;
    const size_t dim = size_t(cat.dims[0]);
    int64_t begin = 0;
    for (const ValueId piece : cat.inputs) {
      const CoreValue& part = value(piece);
      if (part.sizes.size() != value(whole).sizes.size()) return;  // ATen's empty 1-D tensors
      if (part.dtype != value(whole).dtype) return;
    }
    for (size_t i = 0; i < cat.inputs.size(); ++i) {
      const ValueId piece = cat.inputs[i];
      const CoreValue& part = value(piece);
      Layout layout{part.sizes, value(whole).strides, begin * value(whole).strides[dim]};
      begin += part.sizes[dim];
      const bool once = std::count(cat.inputs.begin(), cat.inputs.end(), piece) == 1;
      if (once && graph_.base_of(piece) != piece && assign_viewed(piece, whole, layout)) {
        result_.joined[id].insert(i);
        continue;
      }
      if (!once || !in_kernel_[size_t(piece)] || !can_move(piece) || written_.count(piece))
        continue;
      assign_to(piece, whole, layout);
      result_.joined[id].insert(i);
    }
  }

  // A piece that is all of a value, seen through a view that has no other reader.
  bool assign_viewed(ValueId piece, ValueId whole, const Layout& target) {
    const ValueId made = graph_.base_of(piece);
    const CoreValue& base = value(made);
    if (base.producer == kNoId || base.users.size() != 1 || value(piece).users.size() != 1)
      return false;
    if (result_.roots[size_t(made)] != made || written_.count(made)) return false;
    if (value(piece).numel() != base.numel() || value(piece).dtype != base.dtype) return false;
    if (!in_kernel_[size_t(made)] && !is_joined_by_kernels(made)) return false;
    std::vector<ValueId> movers = assigned_to_[made];
    movers.push_back(made);
    std::vector<Layout> layouts;
    for (const ValueId mover : movers) {
      const auto layout =
          moved(result_.layouts[size_t(mover)], node(value(piece).producer).layout, target);
      if (!layout) return false;
      layouts.push_back(*layout);
    }
    for (size_t i = 0; i < movers.size(); ++i) assign_to(movers[i], whole, layouts[i]);
    return true;
  }

  // A cat of which kernels write every piece where it belongs.
  bool is_joined_by_kernels(ValueId made) const {
    const NodeId maker = value(made).producer;
    const auto joined = result_.joined.find(maker);
    return joined != result_.joined.end() && joined->second.size() == node(maker).inputs.size();
  }

  const CoreGraph& graph_;
  const std::vector<GraphInput>& inputs_;
  const std::vector<FusedItem>& items_;
  std::unordered_map<ValueId, std::vector<ValueId>> assigned_to_;  // by root
  std::vector<int32_t> position_;                                  // by node: the item that runs it
  std::vector<bool> in_kernel_;                                    // by value: stored by a kernel
  // Of inputs as they were before the window.
  struct Read {
    int64_t item;
    ValueId value;  // the input or a view of it
  };
  std::unordered_map<uint32_t, std::vector<Read>> reads_;  // by storage
  int64_t last_failing_ = -1;
  std::unordered_set<ValueId> written_;  // temporaries that partial writes go to in place
  BufferAssignment result_;
};

}  // namespace

BufferAssignment assign_buffers(const CoreGraph& graph, const std::vector<GraphInput>& inputs,
                                const std::vector<FusedItem>& items) {
  return Assigner(graph, inputs, items).run();
}

}  // namespace torch_lazy
