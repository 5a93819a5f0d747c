#include "passes/fuse.h"

#include <c10/util/accumulate.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "passes/fusable.h"
#include "passes/fuse_inlined.h"

namespace torch_lazy {
namespace {

// Of a group. Each accumulates in four vector registers: two vectors in turn, with what rounding
// lost. Of the 32 some are left for what is summed.
constexpr size_t kMostAccumulators = 6;
// From the casts of a product's operands to its sum.
constexpr size_t kMostNodesBeforeReduction = 3;
// Cores that idle while a shorter domain than this is read again are not worth another kernel.
constexpr int64_t kLongDomain = 65536;
// Multiplications from which on a kernel of its own costs a product of matrices nothing.
constexpr int64_t kLargeProduct = 32768;
// What stands so many nodes later and is no smaller is not computed earlier: it would be in memory
// all the while.
constexpr NodeId kFarNodes = 64;
constexpr int64_t kLargeElements = 16384;

struct OpenGroup {
  std::vector<NodeId> nodes;
  Extents domain, parallel;
  std::vector<bool> reduced;
  bool reduces = false;
  size_t accumulators = 0;
  bool closed = false;      // read by a node outside
  NodeId position = kNoId;  // where it runs: its last member that joined before it was closed
  std::unordered_set<ValueId> inputs;
  std::unordered_set<NodeId> after;  // members that are, or follow from, a reduction or scan
};

class Fuser {
 public:
  Fuser(const CoreGraph& graph, const FuseOptions& options)
      : graph_(graph),
        options_(options),
        group_of_(graph.nodes.size(), kNoId),
        inlined_(choose_inlined(graph)) {}

  std::vector<FusedItem> run() {
    for (NodeId id = 0; id < NodeId(graph_.nodes.size()); ++id) visit(id);
    for (int32_t index = 0; index < int32_t(groups_.size()); ++index) close(index);
    return items();
  }

 private:
  const CoreNode& node(NodeId id) const { return graph_.nodes[size_t(id)]; }
  const CoreValue& value(ValueId id) const { return graph_.values[size_t(id)]; }

  bool accumulates(NodeId id) const {
    return node(id).kind == CoreKind::kReduction || node(id).kind == CoreKind::kScan;
  }

  // ---- Reading ----

  // The values in memory or in groups that a node reads, through views and inlined nodes.
  void sources(NodeId id, std::vector<ValueId>& result, std::vector<NodeId>* through) const {
    for (const ValueId input : node(id).inputs) {
      const ValueId base = graph_.base_of(input);
      const NodeId producer = value(base).producer;
      if (producer != kNoId && node(producer).kind == CoreKind::kNumber) continue;
      if (producer != kNoId && inlined_[size_t(producer)]) {
        if (through) through->push_back(producer);
        sources(producer, result, through);
      } else {
        result.push_back(base);
      }
    }
  }

  // ---- Joining ----

  bool fits(const OpenGroup& group, const Space& space) const {
    const bool whole = space.sizes == group.domain;
    if (space.reduces) return whole && (!group.reduces || group.reduced == space.reduced);
    return whole || (group.reduces && space.sizes == group.parallel);
  }

  // Whether the group reduces a long domain to few points (FuseOptions).
  bool is_few_of_many(const OpenGroup& group) const {
    const int64_t elements = c10::multiply_integers(group.domain);
    const int64_t results = c10::multiply_integers(group.parallel);
    if (elements < kLongDomain) return false;
    if (results < options_.few_results) return true;
    if (results >= options_.few_results_of_streamed_rows) return false;
    const auto first = std::ranges::find(group.reduced, true);
    const auto end = std::find(first, group.reduced.end(), false);
    const bool one_row = std::find(end, group.reduced.end(), true) == group.reduced.end();
    return !one_row || elements / results > options_.longest_held_row;
  }

  bool too_serial(const OpenGroup& group, const Space& space,
                  const std::vector<ValueId>& read) const {
    if (!group.reduces || space.sizes != group.domain) return false;
    if (!is_few_of_many(group)) return false;
    for (const ValueId source : read) {
      const NodeId producer = value(source).producer;
      if (producer != kNoId && group.after.count(producer)) return true;
    }
    return false;
  }

  // Whether the node, as part of the group, would read what follows from the group's reductions at
  // another point than the loops are at, as a matrix product that reads another's results; or what
  // the group makes, which would be made as often as it is read.
  bool reads_at_another_point(const OpenGroup& group, NodeId id) const {
    const CoreNode& reader = node(id);
    return std::any_of(reader.inputs.begin(), reader.inputs.end(), [&](ValueId input) {
      const ValueId base = graph_.base_of(input);
      const NodeId producer = value(base).producer;
      if (producer == kNoId) return false;
      const bool is_member = std::ranges::binary_search(group.nodes, producer);
      const bool many_times = is_member && reads_many_times(reader, base);
      return (many_times || group.after.count(producer)) &&
             strides_in_space(reader, input) != own_strides_in_space(group, reader, base);
    });
  }

  bool reads_many_times(const CoreNode& reader, ValueId base) const {
    return c10::multiply_integers(frame_of(reader)) > value(base).numel();
  }

  // A product of matrices beside those of the group: each has accumulators for the rows that it
  // computes together (codegen/choose_jam.h), which then are fewer rows.
  bool is_another_large_product(const OpenGroup& group, NodeId id, const Space& space) const {
    const std::vector<ValueId>& read = node(id).inputs;
    return group.accumulators > 0 && is_made_for_reduction(id) &&
           c10::multiply_integers(space.sizes) > kLargeProduct && read.size() > 1 &&
           std::ranges::all_of(read, [&](ValueId input) {
             return reads_many_times(node(id), graph_.base_of(input));
           });
  }

  // The sizes of what a node runs over, those of 1 among them.
  const Extents& frame_of(const CoreNode& reader) const {
    const bool reduces = reader.kind == CoreKind::kReduction;
    return value(reduces ? reader.inputs[0] : reader.outputs[0]).sizes;
  }

  // By dimension of the node's space, how far apart the elements of the base are that it reads.
  Extents strides_in_space(const CoreNode& reader, ValueId input) const {
    const ValueId base = graph_.base_of(input);
    const CoreValue& read = value(input);
    const Extents& strides = base == input ? read.strides : node(read.producer).layout.strides;
    const Extents& frame = frame_of(reader);
    const size_t missing = frame.size() - read.sizes.size();
    Extents result;
    for (size_t d = 0; d < frame.size(); ++d) {
      if (frame[d] == 1) continue;
      const bool varies = d >= missing && read.sizes[d - missing] != 1;
      result.push_back(varies ? strides[d - missing] : 0);
    }
    return result;
  }

  // The same, if it reads at the point where the group's loops are.
  Extents own_strides_in_space(const OpenGroup& group, const CoreNode& reader, ValueId base) const {
    Extents own;
    const CoreValue& made = value(base);
    for (size_t d = 0; d < made.sizes.size(); ++d)
      if (made.sizes[d] != 1) own.push_back(made.strides[d]);
    const bool whole = space_of(graph_, reader).sizes == group.domain;
    if (!whole || own.size() == group.domain.size()) return own;
    Extents result;
    size_t next = 0;
    for (size_t d = 0; d < group.domain.size(); ++d)
      result.push_back(group.reduced[d] || next == own.size() ? 0 : own[next++]);
    return result;
  }

  // A gather reads its source and its checked indices from memory, a join its pieces at other
  // indices than its own.
  bool must_be_outside(NodeId id, int32_t index, const std::vector<ValueId>& read) const {
    if (!reads_from_memory(id)) return false;
    return std::any_of(read.begin(), read.end(),
                       [&](ValueId source) { return group_making(source) == index; });
  }

  bool reads_from_memory(NodeId id) const {
    return node(id).kind == CoreKind::kGather || node(id).kind == CoreKind::kJoin;
  }

  int32_t group_making(ValueId source) const {
    const NodeId producer = value(source).producer;
    return producer == kNoId ? kNoId : group_of_[size_t(producer)];
  }

  void visit(NodeId id) {
    const CoreNode& made = node(id);
    if (made.kind == CoreKind::kNumber || made.kind == CoreKind::kView || inlined_[size_t(id)])
      return;
    std::vector<ValueId> read;
    sources(id, read, nullptr);
    if (!is_fusable(made.kind)) {
      close_all(read, kNoId);
      return;
    }
    const Space space = space_of(graph_, made);
    std::vector<int32_t> candidates;
    for (const ValueId source : read) consider(candidates, group_making(source), id, space, read);
    if (candidates.empty() && c10::multiply_integers(space.sizes) == 1) {
      const int32_t maker = group_to_run_with(alone(id, space, read));
      if (maker != kNoId) candidates.push_back(maker);
    }
    if (candidates.empty())
      for (const ValueId source : read) {
        const auto sibling = last_reader_.find(source);
        if (sibling == last_reader_.end() ||
            value(source).numel() < c10::multiply_integers(space.sizes))
          continue;
        consider(candidates, sibling->second, id, space, read);
        if (!candidates.empty()) break;
      }
    const int32_t target = candidates.empty() ? new_group() : merge(candidates);
    join(target, id, space, read);
    close_all(read, target);
    for (const ValueId source : read) last_reader_[source] = target;
  }

  void consider(std::vector<int32_t>& candidates, int32_t index, NodeId id, const Space& space,
                const std::vector<ValueId>& read) const {
    if (index == kNoId) return;
    const OpenGroup& group = groups_[size_t(index)];
    if (group.closed || std::count(candidates.begin(), candidates.end(), index)) return;
    if (!fits(group, space) || too_serial(group, space, read)) return;
    if (is_another_large_product(group, id, space)) return;
    if (must_be_outside(id, index, read) || reads_at_another_point(group, id)) return;
    // Of all that would be one group, the node included; an input of two of them counts twice. What
    // is made for a reduction only takes part if that can as well, or all of it would be stored.
    size_t nodes = group.nodes.size() + 1, inputs = group.inputs.size() + read.size();
    size_t accumulators = group.accumulators + accumulates(id);
    if (is_made_for_reduction(id)) {
      ++accumulators;
      nodes += kMostNodesBeforeReduction;
      inputs += kMostNodesBeforeReduction;
    }
    for (const int32_t other : candidates) {
      nodes += groups_[size_t(other)].nodes.size();
      accumulators += groups_[size_t(other)].accumulators;
      inputs += groups_[size_t(other)].inputs.size();
      if (!mergeable(groups_[size_t(other)], group)) return;
    }
    for (const ValueId source : read)  // is no input, or one already
      if (group_making(source) == index || group.inputs.count(source)) --inputs;
    if (too_large(nodes, inputs, accumulators)) return;
    candidates.push_back(index);
  }

  // Whether the node's only reader is a reduction, or leads to one in the same way.
  bool is_made_for_reduction(NodeId id) const {
    for (size_t steps = 0; steps < kMostNodesBeforeReduction; ++steps) {
      if (node(id).kind == CoreKind::kReduction || node(id).outputs.size() != 1) return false;
      const std::vector<NodeId>& users = value(node(id).outputs[0]).users;
      if (users.size() != 1 || users[0] == kNoId) return false;
      id = users[0];
      if (node(id).kind == CoreKind::kReduction) return true;
    }
    return false;
  }

  static bool too_large(size_t nodes, size_t inputs, size_t accumulators) {
    return nodes > kMostGroupNodes || inputs > kMostGroupInputs || accumulators > kMostAccumulators;
  }

  static bool mergeable(const OpenGroup& a, const OpenGroup& b) {
    if (a.domain == b.domain) return !a.reduces || !b.reduces || a.reduced == b.reduced;
    const auto rows_of = [](const OpenGroup& rows, const OpenGroup& whole) {
      return !rows.reduces && whole.reduces && rows.domain == whole.parallel;
    };
    return rows_of(a, b) || rows_of(b, a);
  }

  int32_t new_group() {
    groups_.emplace_back();
    return int32_t(groups_.size()) - 1;
  }

  int32_t merge(const std::vector<int32_t>& candidates) {
    int32_t target = candidates[0];
    for (size_t i = 1; i < candidates.size(); ++i) {
      OpenGroup& from = groups_[size_t(candidates[i])];
      OpenGroup& into = groups_[size_t(target)];
      if (from.domain.size() > into.domain.size() || (from.reduces && !into.reduces)) {
        into.domain = from.domain;
        into.parallel = from.parallel;
        into.reduced = from.reduced;
      }
      into.reduces |= from.reduces;
      into.accumulators += from.accumulators;
      if (!into.closed) into.position = std::max(into.position, from.position);
      for (const NodeId member : from.nodes) group_of_[size_t(member)] = target;
      into.nodes.insert(into.nodes.end(), from.nodes.begin(), from.nodes.end());
      std::sort(into.nodes.begin(), into.nodes.end());
      into.inputs.insert(from.inputs.begin(), from.inputs.end());
      into.after.insert(from.after.begin(), from.after.end());
      for (const ValueId input : from.inputs)
        if (int32_t& reader = last_reader_[input]; reader == candidates[i]) reader = target;
      from = OpenGroup{};
      from.closed = true;  // and empty
    }
    return target;
  }

  void join(int32_t index, NodeId id, const Space& space, const std::vector<ValueId>& read) {
    OpenGroup& group = groups_[size_t(index)];
    if (group.nodes.empty()) {
      group.domain = space.sizes;
      group.reduced.assign(space.sizes.size(), false);
    }
    if (space.reduces && !group.reduces) {
      group.reduces = true;
      group.reduced = space.reduced;
      for (size_t d = 0; d < group.domain.size(); ++d)
        if (!group.reduced[d]) group.parallel.push_back(group.domain[d]);
    }
    group.accumulators += accumulates(id);
    bool after = accumulates(id);
    for (const ValueId source : read) {
      const NodeId producer = value(source).producer;
      if (producer == kNoId || group_of_[size_t(producer)] != index)
        group.inputs.insert(source);
      else
        after = after || group.after.count(producer);
    }
    if (after) group.after.insert(id);
    if (!group.closed) group.position = id;
    group.nodes.push_back(id);
    group_of_[size_t(id)] = index;
  }

  void close_all(const std::vector<ValueId>& read, int32_t reader) {
    for (const ValueId source : read) {
      const int32_t index = group_making(source);
      if (index != kNoId && index != reader) close(index);
    }
  }

  void close(int32_t index) {
    if (groups_[size_t(index)].closed) return;
    groups_[size_t(index)].closed = true;
    const int32_t earlier = group_to_run_with(groups_[size_t(index)]);
    if (earlier != kNoId) merge({earlier, index});
  }

  // ---- Running earlier ----

  // The value is there when the closed group runs, or is made by it.
  bool is_there_for(int32_t closed, ValueId source) const {
    const NodeId producer = value(source).producer;
    if (producer == kNoId) return true;
    const int32_t made_by = group_of_[size_t(producer)];
    const NodeId when = made_by == kNoId ? producer : groups_[size_t(made_by)].position;
    return made_by == closed || when < groups_[size_t(closed)].position;
  }

  // A closed group whose values this one reads, and that it can be part of: what one library call
  // waits for is often made of the same values as what another does. The first there is.
  int32_t group_to_run_with(const OpenGroup& group) const {
    for (const NodeId member : group.nodes) {
      // Of gathers also because which of two failures comes first would change.
      if (reads_from_memory(member)) return kNoId;
      // What is made late can be made in an input's storage.
      for (const NodeId user : value(node(member).outputs[0]).users)
        if (user != kNoId && node(user).kind == CoreKind::kMutation) return kNoId;
    }
    int32_t found = kNoId;
    for (const ValueId input : group.inputs) {
      const int32_t other = group_making(input);
      if (other == kNoId || &groups_[size_t(other)] == &group) continue;
      if (!groups_[size_t(other)].closed) continue;
      if ((found == kNoId || other < found) && may_run_with(other, group)) found = other;
    }
    return found;
  }

  // The group that the node would be by itself.
  OpenGroup alone(NodeId id, const Space& space, const std::vector<ValueId>& read) const {
    OpenGroup group;
    group.nodes = {id};
    group.domain = space.sizes;
    group.accumulators = accumulates(id);
    group.inputs.insert(read.begin(), read.end());
    return group;
  }

  bool may_run_with(int32_t closed, const OpenGroup& group) const {
    const OpenGroup& earlier = groups_[size_t(closed)];
    if (!mergeable(earlier, group) || too_large(earlier.nodes.size() + group.nodes.size(),
                                                earlier.inputs.size() + group.inputs.size(),
                                                earlier.accumulators + group.accumulators))
      return false;
    const bool far = group.position != kNoId && group.position - earlier.position > kFarNodes;
    if (far && c10::multiply_integers(group.domain) >= kLargeElements) return false;
    if (std::any_of(group.nodes.begin(), group.nodes.end(),
                    [&](NodeId id) { return reads_at_another_point(earlier, id); }))
      return false;
    const bool few = earlier.reduces && group.domain == earlier.domain && is_few_of_many(earlier);
    return std::all_of(group.inputs.begin(), group.inputs.end(), [&](ValueId input) {
      const NodeId producer = value(input).producer;
      return is_there_for(closed, input) &&
             !(few && producer != kNoId && earlier.after.count(producer));
    });
  }

  // ---- Result ----

  std::vector<FusedItem> items() const {
    std::vector<FusedItem> result;
    for (NodeId id = 0; id < NodeId(graph_.nodes.size()); ++id) {
      const CoreNode& made = node(id);
      if (made.kind == CoreKind::kNumber || made.kind == CoreKind::kView || inlined_[size_t(id)])
        continue;
      const int32_t index = group_of_[size_t(id)];
      if (index == kNoId) {
        result.emplace_back(id);
        continue;
      }
      const OpenGroup& group = groups_[size_t(index)];
      if (group.position != id) continue;
      FusionGroup made_group;
      made_group.nodes = group.nodes;
      made_group.domain = group.domain;
      made_group.reduced = group.reduced;
      std::vector<ValueId> read;
      for (const NodeId member : group.nodes) sources(member, read, &made_group.inlined);
      std::sort(made_group.inlined.begin(), made_group.inlined.end());
      made_group.inlined.erase(std::unique(made_group.inlined.begin(), made_group.inlined.end()),
                               made_group.inlined.end());
      choose_stored(graph_, made_group);
      result.emplace_back(std::move(made_group));
    }
    return result;
  }

  const CoreGraph& graph_;
  const FuseOptions options_;
  std::vector<OpenGroup> groups_;
  std::vector<int32_t> group_of_;    // by node
  const std::vector<bool> inlined_;  // by node
  std::unordered_map<ValueId, int32_t> last_reader_;
};

}  // namespace

std::vector<FusedItem> fuse(const CoreGraph& graph, const FuseOptions& options) {
  return Fuser(graph, options).run();
}

}  // namespace torch_lazy
