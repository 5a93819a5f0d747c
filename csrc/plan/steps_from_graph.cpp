#include "plan/steps_from_graph.h"

#include <ATen/core/Tensor.h>
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <unordered_map>

#include "ir/node_operator.h"

namespace torch_lazy {
namespace {

using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

// Nodes that make constants, numbers and lists: folded into the operands of the steps that use
// them.
bool is_folded(const Node& node) {
  return node.kind() == c10::prim::Constant || node.kind() == c10::prim::AutogradZero ||
         node.kind() == c10::prim::ListConstruct || node.kind() == c10::prim::ListUnpack ||
         node.kind() == c10::aten::ScalarImplicit;
}

// A number that is known when the window runs only.
bool is_promoted(const Value* value) {
  const Node* node = value->node();
  return node->kind() == c10::aten::ScalarImplicit &&
         node->input()->node()->kind() != c10::prim::Constant;
}

class Reader {
 public:
  Reader(const Graph& graph, c10::Device device) : device_(device) {
    for (const Value* input : graph.inputs()) result_.inputs.push_back(define(input));
    size_t index = 0;
    for (const Node* node : graph.nodes()) {
      if (!is_folded(*node)) add_step(*node, index);
      ++index;
    }
    for (const Value* output : graph.outputs()) result_.outputs.push_back(slot_of(output));
    result_.slots = uint32_t(slots_.size());
  }

  GraphSteps take() { return std::move(result_); }

 private:
  uint32_t define(const Value* value) {
    return slots_.emplace(value, uint32_t(slots_.size())).first->second;
  }

  uint32_t slot_of(const Value* value) const {
    const auto found = slots_.find(value);
    TORCH_CHECK(found != slots_.end(), "%", value->debugName(),
                " is read but no operation makes it");
    return found->second;
  }

  c10::IValue constant(const Value* value) const {
    const Node* node = value->node();
    if (node->kind() == c10::prim::AutogradZero) return {};
    if (node->kind() == c10::aten::ScalarImplicit) return constant(node->input()).toTensor().item();
    auto found = torch::jit::toIValue(value);
    TORCH_CHECK(found.has_value(), "%", value->debugName(), " is no constant");
    return *std::move(found);
  }

  Operand list(const Node& node, const c10::TypePtr& formal) const {
    const c10::TypePtr element = node.output()->type()->expectRef<c10::ListType>().getElementType();
    Operand operand;
    if (element->kind() == c10::TypeKind::TensorType)
      operand.kind = Operand::Kind::kTensorList;
    else if (element->isSubtypeOf(*c10::OptionalType::ofTensor()))
      operand.kind = Operand::Kind::kOptionalTensorList;
    else if (std::any_of(node.inputs().begin(), node.inputs().end(), is_promoted))
      operand.kind = Operand::Kind::kScalarList;
    if (operand.kind == Operand::Kind::kConstant) {
      c10::impl::GenericList items(element);
      for (const Value* item : node.inputs()) items.push_back(constant(item));
      operand.constant = std::move(items);
      prepare_operand(operand, formal, device_);
    } else {
      for (const Value* item : node.inputs())
        operand.elements.push_back(this->operand(item, element));
    }
    return operand;
  }

  Operand operand(const Value* value, const c10::TypePtr& formal) const {
    const Node& node = *value->node();
    if (node.kind() == c10::prim::ListConstruct) return list(node, formal);
    Operand operand;
    if (is_promoted(value)) {
      operand.kind = Operand::Kind::kValue;
      operand.flags = kAsNumber;
      operand.value = slot_of(node.input());
    } else if (node.kind() == c10::prim::ListUnpack || !is_folded(node)) {
      operand.kind = Operand::Kind::kValue;
      operand.flags = kPassAsIs;  // the graph has a node wherever a conj or neg bit changes
      operand.value = slot_of(value);
    } else {
      operand.constant = constant(value);
      prepare_operand(operand, formal, device_);
    }
    return operand;
  }

  void add_step(const Node& node, size_t index) {
    const c10::OperatorHandle handle = operator_of(&node);
    const c10::FunctionSchema& schema = handle.schema();
    Step step;
    step.op = &operator_info(handle);
    for (size_t i = 0; i < node.inputs().size(); ++i)
      step.operands.push_back(operand(node.input(i), schema.arguments().at(i).type()));
    std::vector<const Value*> makes;
    for (const Value* output : node.outputs()) {
      if (output->type()->kind() == c10::TypeKind::TensorType) makes.push_back(output);
      if (output->type()->kind() != c10::TypeKind::ListType) continue;
      for (const torch::jit::Use& use : output->uses()) {
        TORCH_CHECK(use.user->kind() == c10::prim::ListUnpack && output->uses().size() == 1,
                    operator_name(&node), " returns a list that is not unpacked once");
        const auto elements = use.user->outputs();
        makes.insert(makes.end(), elements.begin(), elements.end());
      }
    }
    for (const Value* value : makes) step.outputs.push_back(define(value));
    result_.steps.push_back(std::move(step));
    result_.makes.push_back(std::move(makes));
    result_.nodes.push_back(index);
  }

  const c10::Device device_;
  GraphSteps result_;
  std::unordered_map<const Value*, uint32_t> slots_;
};

}  // namespace

GraphSteps steps_from_graph(const Graph& graph, c10::Device device) {
  return Reader(graph, device).take();
}

}  // namespace torch_lazy
