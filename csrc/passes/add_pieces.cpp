#include "passes/add_pieces.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <unordered_set>
#include <vector>

#include "ops/primitive.h"
#include "passes/decompose_term.h"
#include "passes/graph_builder.h"
#include "passes/simplify_partial_writes.h"

namespace torch_lazy {
namespace {

using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

// Of a sum whose pieces lie between one another, as columns do: each two are compared.
constexpr size_t kMostInterleaved = 512;

struct AddedPiece {
  Layout region;        // from the first element of the whole
  size_t step = 0;      // that makes it
  size_t summands = 1;  // of the sum that have this piece
};

// A value that is zero outside of its pieces, which do not overlap.
struct Padded {
  std::map<int64_t, AddedPiece> pieces;  // by the offsets of their regions
  bool in_a_row = true;                  // each ends before the next one begins
  size_t summands = 1;                   // values of the whole's size that are added up
};

// What is to be made of pieces, once it is known that all of a sum can be.
struct PieceStep {
  Value* value = nullptr;  // there already, or once the step has been made
  Node* as = nullptr;      // a cast of `first`, or a sum of `first` and `second`
  size_t first = 0, second = 0;
};

bool is_zeros(const Value* value) {
  const Node& node = *value->node();
  if (node.kind() != c10::aten::full) return false;
  const auto number = constant_number(node.input(1));
  return number && !number->isComplex() && number->toDouble() == 0 &&
         !std::signbit(number->toDouble());
}

bool is_plain_sum(const Node& node) {
  if (node.kind() != c10::aten::add || node.inputs().size() != 3 ||
      node.hasAttribute(kLibraryAttribute) || !has_complete_type(node.output()))
    return false;
  const auto alpha = constant_number(node.input(2));
  return alpha && alpha->equal(1);
}

// Of all sums of a graph: those that have been looked at, as parts of others or by themselves.
struct Seen {
  std::unordered_set<const Node*> taken;   // by a sum that was made from pieces
  std::unordered_set<const Node*> failed;  // that have other summands, or pieces that overlap
};

// The pieces of one sum.
class Sum {
 public:
  Sum(GraphBuilder& builder, Node* root, Seen& seen)
      : builder_(builder), root_(root), whole_(info_of(root->output())), seen_(seen) {}

  // The sum's value made from pieces; null, and nothing is made, where it has none.
  Value* make() {
    if (!is_dense(whole_.sizes, whole_.strides) || !primitive::has_type(whole_.dtype))
      return nullptr;
    std::optional<Padded> padded = read_sum(root_);
    if (!padded) return nullptr;
    seen_.taken.insert(sums_.begin(), sums_.end());
    for (PieceStep& step : steps_) make_step(step);
    for (auto& [offset, piece] : padded->pieces) add_zeros(piece, padded->summands);
    builder_.insert_before(root_);
    Value* const cat = side_by_side(*padded);
    return cat ? cat : one_by_one(*padded);
  }

 private:
  // ---- Reading ----

  // Nothing else reads the value, which is padded.
  std::optional<Padded> read_operand(Value* value) {
    if (value->uses().size() != 1 || !has_complete_type(value)) return std::nullopt;
    const TensorInfo info = info_of(value);
    if (!info.same_layout(whole_)) return std::nullopt;
    Node* const node = value->node();
    if (node->kind() == c10::aten::as_strided_scatter) return read_piece(node);
    if (node->kind() == c10::aten::_to_copy && !node->hasAttribute(kLibraryAttribute))
      return read_cast(node);
    return is_plain_sum(*node) ? read_sum(node) : std::nullopt;
  }

  std::optional<Padded> read_piece(Node* scatter) {
    if (!is_zeros(scatter->input(0))) return std::nullopt;
    auto region = written_region(scatter->output());
    if (!region || !has_distinct_elements(*region)) return std::nullopt;
    steps_.push_back({.value = scatter->input(1)});
    Padded padded;
    const int64_t offset = region->offset;
    padded.pieces.emplace(offset, AddedPiece{std::move(*region), steps_.size() - 1});
    return padded;
  }

  std::optional<Padded> read_cast(Node* cast) {
    std::optional<Padded> padded = read_operand(cast->input(0));
    if (!padded) return std::nullopt;
    for (auto& [offset, piece] : padded->pieces) {
      steps_.push_back({.as = cast, .first = piece.step});
      piece.step = steps_.size() - 1;
    }
    return padded;
  }

  std::optional<Padded> read_sum(Node* sum) {
    if (seen_.failed.contains(sum)) return std::nullopt;
    std::optional<Padded> padded = read_terms(sum);
    (padded ? sums_ : seen_.failed).insert(sum);
    return padded;
  }

  std::optional<Padded> read_terms(Node* sum) {
    std::optional<Padded> first = read_operand(sum->input(0));
    std::optional<Padded> second = first ? read_operand(sum->input(1)) : std::nullopt;
    if (!second) return std::nullopt;
    if (first->pieces.size() < second->pieces.size()) std::swap(first, second);
    first->summands += second->summands;
    first->in_a_row &= second->in_a_row;
    for (auto& [offset, piece] : second->pieces)
      if (!add(*first, std::move(piece), sum)) return std::nullopt;
    return first;
  }

  bool add(Padded& padded, AddedPiece piece, Node* sum) {
    const int64_t offset = piece.region.offset;
    const auto next = padded.pieces.lower_bound(offset);
    if (next != padded.pieces.end() && next->first == offset) {
      AddedPiece& same = next->second;
      if (!(same.region == piece.region)) return false;  // both have the first element
      steps_.push_back({.as = sum, .first = same.step, .second = piece.step});
      same.step = steps_.size() - 1;
      same.summands += piece.summands;
      return true;
    }
    padded.in_a_row &= next == padded.pieces.end() || piece.region.end() <= next->first;
    padded.in_a_row &=
        next == padded.pieces.begin() || std::prev(next)->second.region.end() <= offset;
    if (!padded.in_a_row && !is_apart(padded, piece.region)) return false;
    padded.pieces.emplace_hint(next, offset, std::move(piece));
    return true;
  }

  static bool is_apart(const Padded& padded, const Layout& region) {
    return padded.pieces.size() < kMostInterleaved &&
           std::ranges::all_of(padded.pieces, [&](const auto& other) {
             return disjoint(other.second.region, region);
           });
  }

  // ---- Making ----

  void make_step(PieceStep& step) {
    if (step.value) return;
    builder_.insert_before(step.as);
    const TensorInfo first = info_of(steps_[step.first].value);
    std::vector<Value*> inputs = step.as->inputs().vec();
    inputs[0] = steps_[step.first].value;
    std::vector<const TensorInfo*> operands{&first};
    TensorInfo second;
    if (is_plain_sum(*step.as)) {
      inputs[1] = steps_[step.second].value;
      second = info_of(inputs[1]);
      operands.push_back(&second);
    }
    TensorInfo made{info_of(step.as->output()).dtype, first.device, first.sizes, {}};
    made.strides = pointwise_strides(made.sizes, operands);
    step.value = builder_.call_like(step.as, inputs, made);
  }

  // The cat of pieces that are parts along one dimension, and of zeros between them. Else null.
  Value* side_by_side(const Padded& padded) {
    std::optional<size_t> dim;
    std::vector<Part> parts;
    for (const auto& [offset, piece] : padded.pieces) {
      const std::optional<Part> part = slice_of(whole_, piece.region, dim);
      if (!part) return nullptr;
      parts.push_back({part->begin, part->end, steps_[piece.step].value});
    }
    std::vector<Value*> values;
    int64_t end = 0;
    const auto fill_up_to = [&](int64_t begin) {
      if (begin == end) return;
      TensorInfo gap = whole_;
      gap.sizes[*dim] = begin - end;
      gap.strides = contiguous_strides(gap.sizes);
      values.push_back(builder_.full(0, gap));
    };
    for (const Part& part : parts) {
      fill_up_to(part.begin);
      values.push_back(part.source);
      end = part.end;
    }
    fill_up_to(whole_.sizes[*dim]);
    return builder_.cat(values, int64_t(*dim), whole_);
  }

  // As writes to zeros.
  Value* one_by_one(const Padded& padded) {
    Term value{&builder_, builder_.full(0, whole_)};
    for (const auto& [offset, piece] : padded.pieces)
      value = scatter_view(value, {&builder_, steps_[piece.step].value}, piece.region.sizes,
                           piece.region.strides, offset);
    return value.value;
  }

  // The other summands are zero there, which is what makes a 0 of -0. With what makes the
  // piece, so that one kernel does both.
  void add_zeros(AddedPiece& piece, size_t summands) {
    if (piece.summands == summands || !c10::isFloatingType(whole_.dtype)) return;
    Value* const value = steps_[piece.step].value;
    const bool is_input = value->node()->kind() == c10::prim::Param;
    builder_.insert_before(is_input ? root_ : value->node()->next());
    builder_.stand_for(root_);
    const bool is_low = c10::isReducedFloatingType(whole_.dtype);
    const Term sum = Term{&builder_, value}.to(is_low ? c10::kFloat : whole_.dtype) + 0;
    steps_.push_back({.value = sum.to(whole_.dtype).value});
    piece.step = steps_.size() - 1;
  }

  GraphBuilder& builder_;
  Node* const root_;
  const TensorInfo whole_;
  Seen& seen_;
  std::vector<PieceStep> steps_;
  std::unordered_set<const Node*> sums_;  // that are taken apart
};

}  // namespace

std::shared_ptr<Graph> add_pieces(std::shared_ptr<Graph> graph) {
  std::vector<Node*> sums;
  for (Node* const node : graph->nodes())
    if (is_plain_sum(*node)) sums.push_back(node);
  GraphBuilder builder(*graph);
  Seen seen;
  for (auto at = sums.rbegin(); at != sums.rend(); ++at) {  // the largest sums first
    if (seen.taken.contains(*at)) continue;
    Value* const pieces = Sum(builder, *at, seen).make();
    if (!pieces) continue;
    move_name((*at)->output(), pieces);
    (*at)->output()->replaceAllUsesWith(pieces);
  }
  builder.order_constants();
  return graph;
}

}  // namespace torch_lazy
