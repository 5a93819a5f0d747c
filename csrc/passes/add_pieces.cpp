#include "passes/add_pieces.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_set>
#include <vector>

#include "ops/primitive.h"
#include "passes/graph_builder.h"
#include "passes/simplify_partial_writes.h"

namespace torch_lazy {
namespace {

using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

// Of a sum: each two are compared.
constexpr size_t kMostPieces = 512;

struct Piece {
  Layout region;     // from the first element of the whole
  size_t step = 0;   // that makes it
  size_t terms = 1;  // of the sum that have this piece
};

// A value that is zero outside of its pieces, which do not overlap.
struct Padded {
  std::vector<Piece> pieces;
  size_t terms = 1;  // values of the whole's size that are added up
};

// What is to be made of pieces, once it is known that all of a sum can be.
struct Step {
  Value* value = nullptr;  // there already, or once the step has been made
  Node* like = nullptr;    // a cast of `first`, or a sum of `first` and `second`
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
  std::unordered_set<const Node*> failed;  // that have other terms, or pieces that overlap
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
    for (Step& step : steps_) make(step);
    for (Piece& piece : padded->pieces) add_zeros(piece, padded->terms);
    builder_.insert_before(root_);
    std::ranges::sort(padded->pieces, {}, [](const Piece& piece) { return piece.region.offset; });
    Value* value = builder_.full(0, whole_);
    for (const auto& [region, step, terms] : padded->pieces)
      value = builder_.call("aten::as_strided_scatter", "",
                            {value, steps_[step].value, builder_.integers(region.sizes),
                             builder_.integers(region.strides), builder_.integer(region.offset)},
                            whole_);
    return value;
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
    padded.pieces.push_back({std::move(*region), steps_.size() - 1});
    return padded;
  }

  std::optional<Padded> read_cast(Node* cast) {
    std::optional<Padded> padded = read_operand(cast->input(0));
    if (!padded) return std::nullopt;
    for (Piece& piece : padded->pieces) {
      steps_.push_back({.like = cast, .first = piece.step});
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
    first->terms += second->terms;
    for (Piece& piece : second->pieces)
      if (!add(*first, std::move(piece), sum)) return std::nullopt;
    return first;
  }

  bool add(Padded& padded, Piece piece, Node* sum) {
    const auto same = std::ranges::find(padded.pieces, piece.region, &Piece::region);
    if (same != padded.pieces.end()) {
      steps_.push_back({.like = sum, .first = same->step, .second = piece.step});
      same->step = steps_.size() - 1;
      same->terms += piece.terms;
      return true;
    }
    const auto is_apart = [&](const Piece& other) { return disjoint(other.region, piece.region); };
    if (padded.pieces.size() == kMostPieces || !std::ranges::all_of(padded.pieces, is_apart))
      return false;
    padded.pieces.push_back(std::move(piece));
    return true;
  }

  // ---- Making ----

  void make(Step& step) {
    if (step.value) return;
    builder_.insert_before(step.like);
    const TensorInfo first = info_of(steps_[step.first].value);
    std::vector<Value*> inputs = step.like->inputs().vec();
    inputs[0] = steps_[step.first].value;
    std::vector<const TensorInfo*> operands{&first};
    TensorInfo second;
    if (is_plain_sum(*step.like)) {
      inputs[1] = steps_[step.second].value;
      second = info_of(inputs[1]);
      operands.push_back(&second);
    }
    TensorInfo made{info_of(step.like->output()).dtype, first.device, first.sizes, {}};
    made.strides = pointwise_strides(made.sizes, operands);
    step.value = builder_.call_like(step.like, inputs, made);
  }

  // The other terms of the sum are zero there, which is what makes a 0 of -0. With what makes the
  // piece, so that one kernel does both.
  void add_zeros(Piece& piece, size_t terms) {
    if (piece.terms == terms || !c10::isFloatingType(whole_.dtype)) return;
    Value* value = steps_[piece.step].value;
    const bool is_input = value->node()->kind() == c10::prim::Param;
    builder_.insert_before(is_input ? root_ : value->node()->next());
    builder_.stand_for(root_);
    const bool is_low = c10::isReducedFloatingType(whole_.dtype);
    const c10::ScalarType computed = is_low ? c10::kFloat : whole_.dtype;
    value = builder_.pointwise("aten::add", "Tensor",
                               {builder_.to(value, computed), builder_.number(0, computed)},
                               computed, {builder_.integer(1)});
    steps_.push_back({.value = builder_.to(value, whole_.dtype)});
    piece.step = steps_.size() - 1;
  }

  GraphBuilder& builder_;
  Node* const root_;
  const TensorInfo whole_;
  Seen& seen_;
  std::vector<Step> steps_;
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
