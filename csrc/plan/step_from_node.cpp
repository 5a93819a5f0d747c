#include "plan/step_from_node.h"

#include <ATen/core/Tensor.h>
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>

#include "ir/node_operator.h"

namespace torch_lazy {
namespace {

using torch::jit::Node;
using torch::jit::Value;

// A number that is known when the window runs only.
bool is_dynamic(const Value* value) {
  const Node* node = value->node();
  return node->kind() == c10::aten::ScalarImplicit &&
         node->input()->node()->kind() != c10::prim::Constant;
}

// Makes the operands of one call.
class OperandReader {
 public:
  OperandReader(c10::Device device, const std::function<uint32_t(const Value*)>& slot_of)
      : device_(device), slot_of_(slot_of) {}

  Operand operand(const Value* value, const c10::TypePtr& formal) const {
    const Node& node = *value->node();
    if (node.kind() == c10::prim::ListConstruct) return list(node, formal);
    Operand operand;
    if (is_dynamic(value)) {
      operand.kind = Operand::Kind::kValue;
      operand.flags = kAsNumber;
      operand.value = slot_of_(node.input());
    } else if (node.kind() == c10::prim::ListUnpack || !is_operand(node)) {
      operand.kind = Operand::Kind::kValue;
      operand.flags = kPassAsIs;  // the graph has a node wherever a conj or neg bit changes
      operand.value = slot_of_(value);
    } else {
      operand.constant = constant(value);
      prepare_operand(operand, formal, device_);
    }
    return operand;
  }

 private:
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
    else if (std::any_of(node.inputs().begin(), node.inputs().end(), is_dynamic))
      operand.kind = Operand::Kind::kScalarList;
    if (operand.kind == Operand::Kind::kConstant) {
      c10::impl::GenericList items(element);
      for (const Value* item : node.inputs()) items.push_back(constant(item));
      operand.constant = c10::IValue(std::move(items));
      prepare_operand(operand, formal, device_);
    } else {
      for (const Value* item : node.inputs())
        operand.elements.push_back(this->operand(item, element));
    }
    return operand;
  }

  const c10::Device device_;
  const std::function<uint32_t(const Value*)>& slot_of_;
};

}  // namespace

bool is_operand(const Node& node) {
  return node.kind() == c10::prim::Constant || node.kind() == c10::prim::AutogradZero ||
         node.kind() == c10::prim::ListConstruct || node.kind() == c10::prim::ListUnpack ||
         node.kind() == c10::aten::ScalarImplicit;
}

std::vector<const Value*> values_made_by(const Node& node) {
  std::vector<const Value*> made;
  for (const Value* output : node.outputs()) {
    if (output->type()->kind() == c10::TypeKind::TensorType) made.push_back(output);
    if (output->type()->kind() != c10::TypeKind::ListType) continue;
    TORCH_CHECK(
        output->uses().size() == 1 && output->uses().front().user->kind() == c10::prim::ListUnpack,
        operator_name(&node), " returns a list that is not unpacked once");
    const auto elements = output->uses().front().user->outputs();
    made.insert(made.end(), elements.begin(), elements.end());
  }
  return made;
}

Step step_from_node(const Node& node, c10::Device device,
                    const std::function<uint32_t(const Value*)>& slot_of) {
  const c10::OperatorHandle handle = operator_of(&node);
  const c10::FunctionSchema& schema = handle.schema();
  const OperandReader reader(device, slot_of);
  Step step;
  step.op = &operator_info(handle);
  for (size_t i = 0; i < node.inputs().size(); ++i)
    step.operands.push_back(reader.operand(node.input(i), schema.arguments().at(i).type()));
  return step;
}

}  // namespace torch_lazy
