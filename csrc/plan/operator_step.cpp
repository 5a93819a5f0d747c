#include "plan/operator_step.h"

#include <utility>

#include "ops/operator_info.h"

namespace torch_lazy {
namespace {

using Kind = Operand::Kind;

// Adds one argument; false where it is more than a tensor, a list of tensors or a constant.
bool add_argument(const Operand& operand,
                  const std::function<TensorDescription(uint32_t)>& describe, OperatorCall& call,
                  std::vector<uint32_t>& slots) {
  OperatorArgument& argument = call.arguments.emplace_back();
  const auto add_tensor = [&](const Operand& tensor) {
    if (tensor.kind != Kind::kValue || tensor.flags & kAsNumber) return false;
    argument.tensors.push_back(describe(tensor.value));
    slots.push_back(tensor.value);
    return true;
  };
  if (operand.kind == Kind::kValue) return add_tensor(operand);
  if (operand.kind == Kind::kConstant) {
    const bool number = operand.constant.isTensor() && operand.constant.toTensor().defined();
    argument.constant = number ? c10::IValue(operand.constant.toTensor().item()) : operand.constant;
    return true;
  }
  if (operand.kind != Kind::kTensorList) return false;
  for (const Operand& element : operand.elements)
    if (!add_tensor(element)) return false;
  return true;
}

}  // namespace

std::optional<DescribedCall> describe_call(
    const Step& call, const std::function<TensorDescription(uint32_t)>& describe,
    std::vector<TensorDescription> results) {
  DescribedCall described{{call.op->name, &call.op->handle.schema(), {}, std::move(results)}, {}};
  for (const Operand& operand : call.operands)
    if (!add_argument(operand, describe, described.call, described.slots)) return std::nullopt;
  return described;
}

std::optional<OperatorStep> operator_step(
    const OperatorTable& table, const Step& call,
    const std::function<TensorDescription(uint32_t)>& describe,
    std::vector<TensorDescription> results) {
  const auto found = table.find(call.op->name);
  if (found == table.end()) return std::nullopt;
  auto described = describe_call(call, describe, std::move(results));
  if (!described) return std::nullopt;
  OperatorStep step{call.op->name, found->second(described->call), std::move(described->slots), 0};
  if (!step.command) return std::nullopt;
  return step;
}

std::optional<OperatorStep> copy_step(const OperatorTable& table, uint32_t source,
                                      const TensorDescription& source_description, uint32_t target,
                                      const TensorDescription& target_description) {
  static const OperatorInfo& op = operator_info("aten::copy_", "");
  const auto found = table.find(op.name);
  if (found == table.end() || source_description.sizes != target_description.sizes)
    return std::nullopt;
  const OperatorCall call{op.name,
                          &op.handle.schema(),
                          {{{target_description}, {}}, {{source_description}, {}}, {{}, false}},
                          {target_description}};
  OperatorStep step{op.name, found->second(call), {target, source, target}, 1};
  if (!step.command) return std::nullopt;
  return step;
}

}  // namespace torch_lazy
