#include "passes/part_graph.h"

#include <unordered_map>

#include "passes/graph_builder.h"

namespace torch_lazy {
namespace {

using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

Layout layout_of(const CoreGraph& graph, ValueId id, const std::vector<int64_t>& input_offsets) {
  const CoreValue& value = graph.values[size_t(id)];
  return {value.sizes, value.strides,
          value.input == kNoId ? 0 : input_offsets[size_t(value.input)]};
}

class PartGraph {
 public:
  PartGraph(const CoreGraph& core, const std::vector<int64_t>& input_offsets)
      : core_(core), input_offsets_(input_offsets), builder_(*graph_) {}

  std::shared_ptr<Graph> make(const GraphPart& part) {
    for (const ValueId id : part.inputs) {
      const Value* const value = core_.values[size_t(id)].value;
      made_[value] = graph_->addInput()->copyMetadata(const_cast<Value*>(value));
    }
    for (const NodeId id : part.nodes) copy(*core_.nodes[size_t(id)].node);
    for (const ValueId id : part.results)
      graph_->registerOutput(made_.at(core_.values[size_t(id)].value));
    builder_.order_constants();
    return std::move(graph_);
  }

 private:
  void copy(const Node& node) {
    // Constants, lists and views first, where the node reads them.
    for (const Value* input : node.inputs()) read(input);
    Node* const copied = graph_->appendNode(graph_->createClone(
        const_cast<Node*>(&node), [&](Value* input) { return made_.at(input); }));
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      const Value* const output = node.outputs()[i];
      made_[output] = copied->outputs()[i];
      for (const torch::jit::Use& use : output->uses())
        if (use.user->kind() == c10::prim::ListUnpack) copy(*use.user);
    }
  }

  void read(const Value* value) {
    if (made_.count(value)) return;
    const auto id = view_of(value);
    if (id)
      made_[value] = make_view(*id, *value);
    else
      copy(*value->node());
  }

  // The view that makes the value, if one does.
  std::optional<NodeId> view_of(const Value* value) {
    if (views_.empty())
      for (size_t id = 0; id < core_.nodes.size(); ++id)
        if (core_.nodes[id].kind == CoreKind::kView)
          views_.emplace(core_.values[size_t(core_.nodes[id].outputs[0])].value, NodeId(id));
    const auto found = views_.find(value);
    return found == views_.end() ? std::nullopt : std::optional(found->second);
  }

  Value* make_view(NodeId id, const Value& value) {
    const CoreNode& view = core_.nodes[size_t(id)];
    Value* made = made_.at(core_.values[size_t(view.inputs[0])].value);
    TensorInfo type = info_of(&value);
    builder_.append_for(const_cast<Node*>(view.node));
    const auto views = views_in_part(core_, id, input_offsets_);
    for (const NamedView& named : *views) {
      type.sizes = named.sizes;
      type.strides = contiguous_strides(named.sizes);
      made = call(named, made, type);
    }
    return made;
  }

  Value* call(const NamedView& named, Value* value, const TensorInfo& type) {
    std::vector<Value*> inputs{value};
    for (const c10::IValue& constant : constants_of(named))
      inputs.push_back(constant.isInt()    ? builder_.integer(constant.toInt())
                       : constant.isBool() ? builder_.boolean(constant.toBool())
                                           : builder_.integers(constant.toIntVector()));
    const ViewOperator view = operator_of(named.kind);
    return builder_.call(view.name, view.overload, inputs, type);
  }

  const CoreGraph& core_;
  const std::vector<int64_t>& input_offsets_;
  std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();
  GraphBuilder builder_;
  std::unordered_map<const Value*, Value*> made_;  // of the core graph's values
  std::unordered_map<const Value*, NodeId> views_;
};

}  // namespace

std::optional<std::vector<NamedView>> views_in_part(const CoreGraph& graph, NodeId view,
                                                    const std::vector<int64_t>& input_offsets) {
  const CoreNode& node = graph.nodes[size_t(view)];
  return named_views(layout_of(graph, node.inputs[0], input_offsets), node.layout);
}

std::shared_ptr<Graph> graph_of_part(const CoreGraph& graph, const GraphPart& part,
                                     const std::vector<int64_t>& input_offsets) {
  return PartGraph(graph, input_offsets).make(part);
}

}  // namespace torch_lazy
