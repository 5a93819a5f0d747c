#include "passes/choose_joins.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "ops/primitive.h"
#include "passes/fusable.h"
#include "passes/view_steps.h"

namespace torch_lazy {
namespace {

// A kernel evaluates all pieces for each element, and again in each of its sweeps.
constexpr size_t kMostPieces = 4;
constexpr size_t kMostPiecesOfReduction = 2;
// What a join computes of its pieces; no group counts it among its nodes.
constexpr size_t kMostNodes = 8;
// How many pieces its readers look at where they compute a join at the indices of their views: what
// is padded, for nine views of it, is a comparison or two for each.
constexpr size_t kMostPiecesOfViews = 36;
// A padded value that no kernel reads is a copy, which short rows make slow: how many times the
// shortest row its rows have to be.
constexpr int64_t kLongerRowsOfCopy = 4;
// A kernel that reads a value flipped goes row by row through all that it does, where else it might
// go through everything as one row: how many times the shortest row the value's rows have to be.
// Rows of 34 floats made a kernel of eight operators take 1.8 times as long.
constexpr int64_t kLongerRowsOfFlip = 8;
// A kernel that reads a value for more elements than so many times its own, as a product of
// matrices does, would choose among its pieces as often: it is better put together once.
constexpr int64_t kMostReads = 2;

// What a kernel does for an element of a value that it computes at any index.
struct Parts {
  size_t pieces = 0;  // in memory
  size_t nodes = 0;   // computed, joins included
  bool constants = false, operators = false;

  Parts& operator+=(const Parts& other) {
    pieces += other.pieces;
    nodes += other.nodes;
    constants |= other.constants;
    operators |= other.operators;
    return *this;
  }
};

class JoinChooser {
 public:
  JoinChooser(CoreGraph& graph, int64_t shortest_row)
      : graph_(graph), shortest_row_(shortest_row) {}

  void run() {
    for (NodeId id = 0; id < NodeId(graph_.nodes.size()); ++id) parts_.push_back(parts_of_node(id));
    for (NodeId id = NodeId(graph_.nodes.size()); id-- > 0;) {  // readers first
      if (node(id).computed_by_readers) continue;
      const std::optional<Parts>& parts = parts_[size_t(id)];
      if (!parts || is_operator(id) || is_read_many_times(node(id).outputs[0])) continue;
      const bool for_views = is_computed_for_views(id, *parts);
      if (!for_views && !is_worth_it(id, *parts)) continue;
      graph_.nodes[size_t(id)].computed_by_readers = for_views;
      make_join(id);
    }
  }

 private:
  const CoreNode& node(NodeId id) const { return graph_.nodes[size_t(id)]; }
  const CoreValue& value(ValueId id) const { return graph_.values[size_t(id)]; }

  // ---- Where pieces begin ----

  // By input; nothing where pieces do not tell it.
  std::optional<std::vector<Extents>> begins_of(NodeId id) const {
    const CoreNode& made = node(id);
    const CoreValue& whole = value(made.outputs[0]);
    for (const ValueId piece : made.inputs)
      if (value(piece).dtype != whole.dtype || value(piece).numel() == 0 ||
          value(piece).sizes.size() != whole.sizes.size())
        return std::nullopt;
    if (!primitive::has_type(whole.dtype)) return std::nullopt;
    std::vector<Extents> begins(made.inputs.size(), Extents(whole.sizes.size(), 0));
    if (made.kind == CoreKind::kFlip) return begins;
    if (made.kind == CoreKind::kCat) {
      int64_t begin = 0;
      for (size_t i = 0; i < begins.size(); ++i) {
        begins[i][size_t(made.dims[0])] = begin;
        begin += value(made.inputs[i]).sizes[size_t(made.dims[0])];
      }
      return begins;
    }
    const CoreValue& base = value(made.inputs[0]);
    const auto begin = begin_of_box(made.layout, base.sizes, base.strides);
    if (!begin) return std::nullopt;
    begins[1] = *begin;
    return begins;
  }

  bool has_long_rows(const CoreValue& whole, const CoreValue& piece, int64_t least) const {
    for (size_t d = 0; d < whole.sizes.size(); ++d)
      if (piece.sizes[d] != whole.sizes[d] &&
          row_behind_border(whole.sizes, whole.strides, d) < least)
        return false;
    return true;
  }

  bool has_long_rows(NodeId id, int64_t least) const {
    return std::ranges::all_of(node(id).inputs, [&](ValueId piece) {
      return has_long_rows(value(node(id).outputs[0]), value(piece), least);
    });
  }

  // ---- What kernels can compute at any index ----

  bool is_operator(NodeId id) const {
    return node(id).kind == CoreKind::kPointwise || node(id).kind == CoreKind::kCopy;
  }

  bool is_flip(NodeId id) const { return node(id).kind == CoreKind::kFlip; }

  // Of a join, and of an operator that is computed for one; nodes before it are known.
  std::optional<Parts> parts_of_node(NodeId id) const {
    if (is_operator(id)) return sum_of_parts(id, {.nodes = 1, .operators = true});
    const CoreNode& made = node(id);
    const bool of_constant = made.kind == CoreKind::kScatter && is_constant(made.inputs[0]);
    if (made.kind != CoreKind::kCat && !of_constant && !is_flip(id)) return std::nullopt;
    if (!begins_of(id) || !has_long_rows(id, shortest_row_)) return std::nullopt;
    const CoreValue& whole = value(made.outputs[0]);
    for (const int64_t d : made.flipped)
      if (row_behind_border(whole.sizes, whole.strides, size_t(d)) <
          kLongerRowsOfFlip * shortest_row_)
        return std::nullopt;
    return sum_of_parts(id, {.nodes = 1});
  }

  std::optional<Parts> sum_of_parts(NodeId id, Parts parts) const {
    for (const ValueId input : node(id).inputs) {
      const std::optional<Parts> of_input = parts_of(input, id);
      if (!of_input) return std::nullopt;
      parts += *of_input;
    }
    if (parts.pieces > kMostPieces || parts.nodes > kMostNodes) return std::nullopt;
    return parts;
  }

  // Of a value that `reader` computes at an index of its own.
  std::optional<Parts> parts_of(ValueId id, NodeId reader) const {
    const ValueId base = graph_.base_of(id);
    const NodeId producer = value(base).producer;
    if (producer == kNoId) return Parts{.pieces = 1};
    const CoreNode& made = node(producer);
    if (made.kind == CoreKind::kNumber) return Parts{};
    if (is_constant(base)) {
      if (base != id) return std::nullopt;  // which value an index of a view is, is not known
      return Parts{.constants = true};
    }
    const bool alone = is_read_by(id, reader);
    if (alone && parts_[size_t(producer)]) return parts_[size_t(producer)];
    // What a kernel makes for this reader alone, or for others too: it is stored where only slices
    // of it are read, and where it would have to be stored flipped as well.
    if (is_flip(reader)) return Parts{.pieces = 1};
    if (alone && is_operator(producer)) return std::nullopt;
    if (!is_fusable(made.kind) || value(id).numel() < value(base).numel())
      return Parts{.pieces = 1};
    return std::nullopt;
  }

  // By nothing else, and once.
  bool is_read_by(ValueId id, NodeId reader) const {
    return graph_.base_of(id) == id && value(id).users == std::vector<NodeId>{reader} &&
           std::ranges::count(node(reader).inputs, id) == 1;
  }

  bool is_constant(ValueId id) const {
    const NodeId producer = value(id).producer;
    return producer != kNoId &&
           (node(producer).kind == CoreKind::kFill || node(producer).kind == CoreKind::kArange);
  }

  // ---- Choosing ----

  // An index of the view gives one of the whole, and rows are read as such: its dimensions step
  // along the whole's, by single elements along the densest.
  static bool steps_through(const Layout& view, const CoreValue& whole) {
    const auto steps = steps_of(view, whole.sizes, whole.strides);
    return steps && std::ranges::all_of(steps->along, [&](ViewSteps::Along along) {
             return along.by <= 1 || whole.strides[along.dim] != 1;
           });
  }

  // Kernels see it through views that step along its dimensions, and nothing else does: what is
  // padded and then read shifted. Its pieces lie where no kernel of a group has just made them.
  bool is_computed_for_views(NodeId id, const Parts& parts) const {
    const CoreValue& whole = value(node(id).outputs[0]);
    const auto is_at_hand = [&](ValueId piece) {
      const NodeId producer = value(graph_.base_of(piece)).producer;
      if (producer == kNoId || node(producer).kind == CoreKind::kFill) return true;
      return !is_fusable(node(producer).kind) && !parts_[size_t(producer)];
    };
    const auto is_kernel = [&](NodeId reader) {
      return reader != kNoId && is_operator(reader) && !node(reader).computed_by_readers;
    };
    const auto is_step = [&](NodeId user) {
      return user != kNoId && node(user).kind == CoreKind::kView &&
             steps_through(node(user).layout, whole) &&
             std::ranges::all_of(value(node(user).outputs[0]).users, is_kernel);
    };
    return !parts.operators && !whole.users.empty() &&
           whole.users.size() * parts.pieces <= kMostPiecesOfViews &&
           std::ranges::all_of(node(id).inputs, is_at_hand) &&
           std::ranges::all_of(whole.users, is_step);
  }

  // Also through views.
  bool is_read_many_times(ValueId whole) const {
    const int64_t most = kMostReads * value(whole).numel();
    const auto reads_more = [&](NodeId reader) {
      return reader != kNoId && is_operator(reader) &&
             value(node(reader).outputs[0]).numel() > most;
    };
    return std::ranges::any_of(value(whole).users, [&](NodeId user) {
      if (user == kNoId || node(user).kind != CoreKind::kView) return reads_more(user);
      return std::ranges::any_of(value(node(user).outputs[0]).users, reads_more);
    });
  }

  bool is_worth_it(NodeId id, const Parts& parts) const {
    bool read = false;
    for (const NodeId user : value(node(id).outputs[0]).users) {
      if (user == kNoId || !is_fusable(node(user).kind)) continue;
      if (node(user).kind == CoreKind::kReduction && parts.pieces > kMostPiecesOfReduction)
        return false;
      read |= node(user).kind != CoreKind::kGather;
    }
    return read || (parts.constants && !parts.operators &&
                    has_long_rows(id, kLongerRowsOfCopy * shortest_row_));
  }

  void make_join(NodeId id) {
    mark_parts(id);
    std::vector<Extents> begins = *begins_of(id);
    CoreNode& made = graph_.nodes[size_t(id)];
    made.kind = CoreKind::kJoin;
    made.begins = std::move(begins);
  }

  // What parts_of computes.
  void mark_parts(NodeId id) {
    for (const ValueId input : node(id).inputs) {
      const NodeId producer = value(input).producer;
      if (producer == kNoId || !is_read_by(input, id)) continue;
      if (!parts_[size_t(producer)]) continue;
      graph_.nodes[size_t(producer)].computed_by_readers = true;
      if (is_operator(producer))
        mark_parts(producer);
      else
        make_join(producer);
    }
  }

  CoreGraph& graph_;
  const int64_t shortest_row_;
  std::vector<std::optional<Parts>> parts_;  // by node
};

}  // namespace

int64_t row_behind_border(c10::IntArrayRef sizes, c10::IntArrayRef strides, size_t dim) {
  int64_t row = 1;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (strides[d] < strides[dim]) row *= sizes[d];
  return row == 1 ? sizes[dim] : row;
}

void choose_joins(CoreGraph& graph, int64_t shortest_row) {
  JoinChooser(graph, shortest_row).run();
}

}  // namespace torch_lazy
