#include "plan/step_range.h"

#include <utility>
#include <variant>

#include "profile/running_window.h"

namespace torch_lazy {
namespace {

EventKind kind_of(const PlanStep& step) {
  if (std::holds_alternative<KernelStep>(step.action)) return EventKind::kKernel;
  if (std::holds_alternative<LibraryStep>(step.action)) return EventKind::kLibraryCall;
  if (std::holds_alternative<OperatorStep>(step.action)) return EventKind::kCommand;
  if (std::holds_alternative<CopyStep>(step.action)) return EventKind::kCopy;
  return EventKind::kCheck;
}

}  // namespace

StepRange::StepRange(const PlanStep& step, const StepCost& cost, const Values& values) {
  if (cost.name.empty()) return;
  ProfileEvent event{kind_of(step), cost.name};
  event.bytes = cost.bytes;
  event.lines = lines_of_nodes(step.operations.empty() ? c10::ArrayRef<int64_t>(step.origin)
                                                       : step.operations);
  std::vector<c10::IValue> tensors;
  if (is_observed())
    for (const uint32_t slot : slots_of(step))
      if (values[slot].defined()) tensors.emplace_back(values[slot]);
  range_.emplace(std::move(event), tensors);
}

StepRange::StepRange(const Step& step, size_t index, const Values& values) {
  ProfileEvent event{EventKind::kLibraryCall, step.op->name};
  event.lines = lines_of_nodes(int64_t(index));
  std::vector<c10::IValue> tensors;
  if (is_observed())
    for_each_value(step.operands, [&](uint32_t value) { tensors.emplace_back(values[value]); });
  range_.emplace(std::move(event), tensors);
}

}  // namespace torch_lazy
