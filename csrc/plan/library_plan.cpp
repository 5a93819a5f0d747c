#include "plan/library_plan.h"

#include <unordered_map>
#include <utility>

#include "ir/print.h"
#include "plan/step_from_node.h"

namespace torch_lazy {
namespace {

using torch::jit::Node;
using torch::jit::Value;

class Slots {
 public:
  uint32_t define(const Value* value) {
    return slots_.emplace(value, uint32_t(slots_.size())).first->second;
  }

  uint32_t at(const Value* value) const {
    const auto found = slots_.find(value);
    TORCH_CHECK(found != slots_.end(), "%", value->debugName(),
                " is read but no operation makes it");
    return found->second;
  }

  uint32_t size() const { return uint32_t(slots_.size()); }

 private:
  std::unordered_map<const Value*, uint32_t> slots_;
};

ExpectedValue expected_value(const Value& value, uint32_t slot) {
  const auto& type = value.type()->expectRef<c10::TensorType>();
  ExpectedValue expected{slot, type.isComplete(), {}, {}, {}, {}};
  if (expected.defined) {
    expected.dtype = *type.scalarType();
    expected.sizes = c10::IntArrayRef(*type.sizes().concrete_sizes());
    expected.strides = c10::IntArrayRef(*type.strides().concrete_sizes());
  }
  expected.recorded = c10::str("%", value.debugName(), ", which was ", type,
                               " when it was recorded at ", recorded_at(*value.node()));
  return expected;
}

}  // namespace

std::vector<ExpectedValue> expected_values(const Node& node, const Step& step) {
  std::vector<ExpectedValue> expected;
  const std::vector<const Value*> made = values_made_by(node);
  for (size_t i = 0; i < made.size(); ++i)
    expected.push_back(expected_value(*made[i], uint32_t(step.outputs[i])));
  return expected;
}

Plan library_plan(const torch::jit::Graph& graph, c10::Device device, bool verify) {
  Plan plan;
  plan.as_recorded = true;
  Slots slots;
  for (const Value* input : graph.inputs()) plan.inputs.push_back(slots.define(input));
  int64_t index = -1;
  for (const Node* node : graph.nodes()) {
    ++index;
    if (is_operand(*node)) continue;
    LibraryStep step{step_from_node(*node, device, [&](const Value* v) { return slots.at(v); })};
    for (const Value* made : values_made_by(*node)) step.step.outputs.push_back(slots.define(made));
    if (verify) step.expected = expected_values(*node, step.step);
    plan.steps.push_back({std::move(step), index, {}});
    ++plan.library_calls;
  }
  for (const Value* output : graph.outputs()) plan.outputs.push_back(slots.at(output));
  plan.slots = slots.size();
  release_slots(plan);
  return plan;
}

}  // namespace torch_lazy
