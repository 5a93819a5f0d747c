#include "passes/simplify.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "ir/node_operator.h"
#include "passes/constant_uses.h"
#include "passes/dead_code.h"
#include "passes/graph_builder.h"
#include "passes/pure_nodes.h"
#include "passes/simplify_algebra.h"
#include "passes/simplify_gathers.h"

namespace torch_lazy {
namespace {

using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Use;
using torch::jit::Value;

// Memory that a step holds anyway, and a distance in nodes at which it does not matter either.
constexpr int64_t kLargeBytes = int64_t{64} << 10;
constexpr int64_t kLongAgo = 64;

class Simplifier {
 public:
  Simplifier(Graph& graph, c10::IntArrayRef input_offsets)
      : graph_(graph), input_offsets_(input_offsets), builder_(graph, input_offsets) {
    for (const Value* output : graph.outputs()) outputs_.insert(output);
  }

  void run() {
    for (auto next = graph_.nodes().begin(); next != graph_.nodes().end();) {
      Node* const node = *next;
      ++next;
      visit(node);
    }
    builder_.order_constants();
    remove_dead_code(graph_, is_pure);
    sink_cats();
  }

 private:
  // ---- Merging and identities ----

  // Whether the node writes to an input what is there already: writes to inputs come last, each to
  // memory of its own.
  static bool writes_nothing_new(const Node& node) {
    if (node.kind() != c10::aten::copy_ || node.hasUses()) return false;
    const Node* const made = node.input(1)->node();
    return made->kind() == c10::aten::clone && made->input(0) == node.input(0);
  }

  void visit(Node* node) {
    positions_[node] = ++visited_;
    if (writes_nothing_new(*node)) return node->destroy();
    if (move_gather(node)) return;
    if (node->kind() == c10::prim::ListUnpack || !is_pure(*node)) return;
    if (!is_prim(*node) && !node->hasAttribute(kLibraryAttribute)) {
      builder_.insert_before(node);
      Value* const simpler = simpler_value(builder_, node, input_offsets_);
      const std::vector<Node*> made = builder_.inserted();
      note_position(made);
      // In the layout of the value it replaces; a view of one number has none of its own.
      if (simpler && !made.empty() && simpler->node() == made.back() &&
          node->kind() != c10::aten::as_strided)
        simpler->setType(node->output()->type());
      if (simpler && simpler != node->output() && replace(node->output(), simpler)) {
        for (Node* each : made) merge(each);
        return;
      }
      destroy_unused(made);
    }
    merge(node);
  }

  // Of all that is inserted: a node that is no more may have had the same address.
  void note_position(const std::vector<Node*>& inserted) {
    for (const Node* node : inserted) positions_[node] = visited_;
  }

  // A gather fails on data, so it is not pure: another one of the same indices takes its place.
  bool move_gather(Node* node) {
    Value* const moved = gather_of_operands(builder_, node);
    if (!moved) return false;
    note_position(builder_.inserted());
    if (replace(node->output(), moved)) {
      node->destroy();
      return true;
    }
    destroy_unused(builder_.inserted());
    return false;
  }

  void merge(Node* node) {
    const auto [known, added] = known_.emplace(key_of(node), node);
    if (added || known->second == node) return;
    const bool too_many_uses =
        node->kind() == c10::prim::Constant &&
        known->second->output()->uses().size() + node->output()->uses().size() >
            kMostUsesOfConstant;
    if (too_many_uses || is_long_gone(*known->second)) {
      known->second = node;
      return;
    }
    bool all = true;
    for (size_t i = 0; i < node->outputs().size(); ++i)
      all &= can_replace(node->output(i), known->second->output(i));
    for (size_t i = 0; all && i < node->outputs().size(); ++i)
      replace(node->output(i), known->second->output(i));
  }

  // Whether what the node makes is large and was read long ago for the last time. Who computes it
  // again, as checkpointed parts of a model do, has not kept it for want of memory.
  bool is_long_gone(const Node& node) const {
    return std::ranges::any_of(node.outputs(), [&](const Value* output) {
      return has_complete_type(output) && !is_prim(node) && bytes_of(output) >= kLargeBytes &&
             visited_ > last_read(output) + kLongAgo;
    });
  }

  static int64_t bytes_of(const Value* value) {
    const TensorInfo info = info_of(value);
    return info.elements() * int64_t(c10::elementSize(info.dtype));
  }

  // Among the visited nodes, through views; what is not visited yet is after all of them.
  int64_t last_read(const Value* value) const {
    int64_t last = 0;
    for (const Use& use : value->uses()) {
      const auto position = positions_.find(use.user);
      if (position == positions_.end()) return visited_;
      last = std::max(last, position->second);
      if (use.user->kind() == c10::aten::as_strided)
        last = std::max(last, last_read(use.user->output()));
    }
    return last;
  }

  // What a node computes: operator, arguments, constants and the types of its results.
  std::string key_of(const Node* node) const {
    std::string key;
    const auto number = [&](uint64_t value) {
      key.append(reinterpret_cast<const char*>(&value), sizeof value);
    };
    number(c10::unique_t(node->kind()));
    if (node->hasAttribute(kOverloadAttribute)) key += node->s(kOverloadAttribute);
    number(node->inputs().size());
    for (const Value* input : node->inputs()) {
      // Constants by what they hold: those made here are not among the nodes visited.
      if (input->node()->kind() == c10::prim::Constant)
        key += input->type()->annotation_str() + constant_key(input->node());
      else
        number(input->unique());
    }
    for (const Value* output : node->outputs()) {
      if (!has_complete_type(output)) {
        key += output->type()->annotation_str();
        continue;
      }
      const TensorInfo info = info_of(output);
      number(uint64_t(info.dtype));
      number(info.sizes.size());
      for (const int64_t size : info.sizes) number(uint64_t(size));
      for (const int64_t stride : info.strides) number(uint64_t(stride));
    }
    if (node->kind() == c10::prim::Constant) key += constant_key(node);
    return key;
  }

  // Constants that cannot be told apart cheaply get a key of their own.
  static std::string constant_key(const Node* node) {
    const auto value = constant_value(node->output());
    const std::string own = "#" + std::to_string(node->output()->unique());
    if (!value) return own;
    const auto bits = [](const auto& number) {
      return std::string(reinterpret_cast<const char*>(&number), sizeof number);
    };
    if (value->isNone()) return "none";
    if (value->isBool()) return value->toBool() ? "true" : "false";
    if (value->isInt()) return "i" + bits(value->toInt());
    if (value->isDouble()) return "d" + bits(value->toDouble());
    if (value->isString()) return "s" + value->toStringRef();
    if (value->isIntList()) {
      std::string key = "l";
      for (const int64_t item : value->toIntVector()) key += bits(item);
      return key;
    }
    if (!value->isTensor() || value->toTensor().numel() != 1) return own;
    const at::Tensor tensor = value->toTensor();
    return "t" + std::string(is_wrapped_number(node->output()) ? "w" : "") +
           std::string(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
  }

  // ---- Replacing ----

  bool is_output(const Value* value) const { return outputs_.count(value) != 0; }

  // Reads elements only, whatever their layout.
  static bool ignores_layout(const Use& use) {
    const Node& user = *use.user;
    if (is_pointwise(user)) return true;
    static const std::unordered_set<c10::Symbol> kOthers = [] {
      std::unordered_set<c10::Symbol> kinds;
      for (const char* name :
           {"sum", "prod", "amax", "amin", "any", "all", "argmax", "argmin", "clone", "copy_"})
        kinds.insert(c10::Symbol::fromQualString(std::string("aten::") + name));
      return kinds;
    }();
    if (user.kind() == c10::aten::as_strided_scatter) return use.offset == 1;
    return kOthers.count(user.kind()) != 0;
  }

  // Whether all that reads `value` may read `other`, which has the same elements, in its place.
  bool can_replace(const Value* value, const Value* other) const {
    if (!has_complete_type(value)) return true;  // numbers, lists
    const TensorInfo info = info_of(value), found = info_of(other);
    if (info.dtype != found.dtype || info.sizes != found.sizes) return false;
    const bool input = other->node()->kind() == c10::prim::Param;
    const bool constant = other->node()->kind() == c10::prim::Constant;
    const bool view = other->node()->kind() == c10::aten::as_strided;
    const bool same_layout = info.strides == found.strides;
    // An output has memory of its own, in the layout of its type.
    if (is_output(value) && (is_output(other) || input || constant || view || !same_layout))
      return false;
    for (const Use& use : value->uses()) {
      if (use.user->kind() == c10::prim::Return) continue;
      // Inputs are written one after the other: none may be read for the next.
      if (use.user->kind() == c10::aten::copy_ && (input || view)) return false;
      // The base of a view is no view itself, and offsets into inputs mean another thing.
      const bool base = use.offset == 0 && (use.user->kind() == c10::aten::as_strided ||
                                            use.user->kind() == c10::aten::as_strided_scatter);
      if (base && (input || view || constant)) return false;
      if (!same_layout && !ignores_layout(use)) return false;
    }
    return true;
  }

  bool replace(Value* value, Value* other) {
    if (!can_replace(value, other)) return false;
    if (outputs_.erase(value) != 0) {
      outputs_.insert(other);
      move_name(value, other);
    }
    value->replaceAllUsesWith(other);
    return true;
  }

  // ---- Order ----

  // Cats, and views of them, go to where they are first read: until then what makes the parts can
  // share kernels with what reads them.
  void sink_cats() {
    std::vector<Node*> sunk;  // the last one first: what reads a cat sinks before the cat does
    for (Node* node : graph_.nodes().reverse()) {
      const Node* made = node->kind() == c10::aten::as_strided ? node->input(0)->node() : node;
      if (made->kind() == c10::aten::cat) sunk.push_back(node);
    }
    Node* end = graph_.return_node();  // or the first of the writes to inputs before it
    while (end->prev()->kind() == c10::aten::copy_) end = end->prev();
    for (Node* node : sunk) {
      Node* reader = end;
      for (const Use& use : node->output()->uses())
        if (use.user->isBefore(reader)) reader = use.user;
      if (node->isBefore(reader)) node->moveBefore(reader);
    }
  }

  Graph& graph_;
  const c10::IntArrayRef input_offsets_;
  GraphBuilder builder_;
  std::unordered_set<const Value*> outputs_;
  std::unordered_map<std::string, Node*> known_;  // by what they compute
  int64_t visited_ = 0;
  // How many nodes were visited up to one, or to that for which it was inserted.
  std::unordered_map<const Node*, int64_t> positions_;
};

}  // namespace

std::shared_ptr<Graph> simplify(std::shared_ptr<Graph> graph, c10::IntArrayRef input_offsets) {
  Simplifier(*graph, input_offsets).run();
  return graph;
}

}  // namespace torch_lazy
