#include "plan/plan_lives.h"

#include <unordered_set>

namespace torch_lazy {
namespace {

template <typename Visit>
void for_each_slot(const PlanStep& step, const Visit& visit) {
  const auto operands = [&](const Step& library) {
    const auto walk = [&](auto&& self, const Operand& operand) -> void {
      if (operand.kind == Operand::Kind::kValue) visit(operand.value);
      for (const Operand& element : operand.elements) self(self, element);
    };
    for (const Operand& operand : library.operands) walk(walk, operand);
    for (const int64_t slot : library.outputs)
      if (slot >= 0) visit(uint32_t(slot));
  };
  struct Visitor {
    const Visit& visit;
    const decltype(operands)& of;
    void operator()(const AllocateStep& s) const { visit(s.slot); }
    void operator()(const ConstantStep& s) const { visit(s.slot); }
    void operator()(const ViewStep& s) const { visit(s.base), visit(s.slot); }
    void operator()(const CopyStep& s) const { visit(s.source), visit(s.target); }
    void operator()(const CheckStep& s) const { visit(s.indices), of(s.raise); }
    void operator()(const LibraryStep& s) const { of(s.step); }
    void operator()(const KernelStep& s) const {
      for (const MemoryPlace& pointer : s.pointers)
        if (!pointer.arena) visit(pointer.slot);
    }
  };
  std::visit(Visitor{visit, operands}, step.action);
}

}  // namespace

void release_slots(Plan& plan) {
  std::vector<bool> settled(plan.slots);  // released by a later step, or kept to the end
  for (const uint32_t slot : plan.outputs) settled[slot] = true;
  for (const uint32_t slot : plan.inputs) settled[slot] = true;
  for (auto step = plan.steps.rbegin(); step != plan.steps.rend(); ++step)
    for_each_slot(*step, [&](uint32_t slot) {
      if (settled[slot]) return;
      settled[slot] = true;
      step->released.push_back(slot);
    });
}

size_t first_write(const Plan& plan) {
  std::unordered_set<uint32_t> of_inputs(plan.inputs.begin(), plan.inputs.end());
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const auto& action = plan.steps[i].action;
    if (const auto* view = std::get_if<ViewStep>(&action); view && of_inputs.count(view->base))
      of_inputs.insert(view->slot);
    if (const auto* copy = std::get_if<CopyStep>(&action); copy && of_inputs.count(copy->target))
      return i;
    if (const auto* kernel = std::get_if<KernelStep>(&action))
      for (size_t p = 0; p < kernel->pointers.size(); ++p)
        if (kernel->lowered.buffers[p].written && !kernel->pointers[p].arena &&
            of_inputs.count(kernel->pointers[p].slot))
          return i;
  }
  return plan.steps.size();
}

}  // namespace torch_lazy
