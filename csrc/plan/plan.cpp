#include "plan/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unordered_set>

#include "ops/operator_info.h"

namespace torch_lazy {
namespace {

void append_slots(const Operand& operand, std::vector<uint32_t>& slots) {
  if (operand.kind == Operand::Kind::kValue) slots.push_back(operand.value);
  for (const Operand& element : operand.elements) append_slots(element, slots);
}

struct SlotCollector {
  std::vector<uint32_t>& slots;

  void operator()(const AllocateStep& step) const { slots.push_back(step.slot); }
  void operator()(const ConstantStep& step) const { slots.push_back(step.slot); }
  void operator()(const ViewStep& step) const { slots.insert(slots.end(), {step.base, step.slot}); }
  void operator()(const CopyStep& step) const {
    slots.insert(slots.end(), {step.source, step.target});
  }
  void operator()(const CheckStep& step) const { slots.push_back(step.indices); }
  void operator()(const LibraryStep& step) const { add(step.step); }
  void operator()(const KernelStep& step) const {
    for (const BufferLocation& pointer : step.pointers)
      if (pointer.has_slot()) slots.push_back(pointer.slot);
  }

  void operator()(const OperatorStep& step) const {
    slots.insert(slots.end(), step.slots.begin(), step.slots.end());
  }

  void add(const Step& call) const {
    for (const Operand& operand : call.operands) append_slots(operand, slots);
    for (const int64_t slot : call.outputs)
      if (slot >= 0) slots.push_back(uint32_t(slot));
  }
};

std::string layout_text(const Extents& sizes, const Extents& strides, int64_t offset) {
  return fmt::format("[{}] strides [{}]{}", fmt::join(sizes, ", "), fmt::join(strides, ", "),
                     offset ? fmt::format(" + {}", offset) : "");
}

struct Printer {
  std::string operator()(const AllocateStep& step) const {
    return fmt::format("%{} = empty {} {}", step.slot, c10::toString(step.dtype),
                       layout_text(step.sizes, step.strides, 0));
  }
  std::string operator()(const ConstantStep& step) const {
    return fmt::format("%{} = constant", step.slot);
  }
  std::string operator()(const ViewStep& step) const {
    return fmt::format("%{} = view %{} {}", step.slot, step.base,
                       layout_text(step.layout.sizes, step.layout.strides, step.layout.offset));
  }
  std::string operator()(const CopyStep& step) const {
    return fmt::format("copy %{} to %{}", step.source, step.target);
  }
  std::string operator()(const CheckStep& step) const {
    return fmt::format("check %{} < {} for {}", step.indices, step.limit, step.name);
  }
  std::string operator()(const LibraryStep& step) const {
    std::vector<std::string> outputs;
    for (const int64_t slot : step.step.outputs) outputs.push_back(fmt::format("%{}", slot));
    return fmt::format("{}{}call {}", fmt::join(outputs, ", "), outputs.empty() ? "" : " = ",
                       step.step.op->name);
  }
  std::string operator()(const KernelStep& step) const {
    std::string text = "kernel " + step.name + "(";
    for (size_t i = 0; i < step.pointers.size(); ++i) {
      const BufferLocation& place = step.pointers[i];
      text += i ? ", " : "";
      if (place.written) text += "out ";
      if (place.arena)
        text += fmt::format("arena+{}", place.bytes);
      else
        text += place.has_slot() ? fmt::format("%{}", place.slot) : "check";
    }
    return text + fmt::format(") {} work items", step.lowered.work_items);
  }
  std::string operator()(const OperatorStep& step) const {
    const auto results = step.slots.end() - std::ptrdiff_t(step.results);
    return fmt::format("%{} = command {} %{}", fmt::join(results, step.slots.end(), ", %"),
                       step.name, fmt::join(step.slots.begin(), results, ", %"));
  }
};

}  // namespace

std::vector<uint32_t> slots_of(const PlanStep& step) {
  std::vector<uint32_t> slots;
  std::visit(SlotCollector{slots}, step.action);
  return slots;
}

void release_slots(Plan& plan) {
  std::vector<bool> settled(plan.slots);  // released by a later step, or kept to the end
  for (const uint32_t slot : plan.outputs) settled[slot] = true;
  for (const uint32_t slot : plan.inputs) settled[slot] = true;
  for (auto step = plan.steps.rbegin(); step != plan.steps.rend(); ++step)
    for (const uint32_t slot : slots_of(*step)) {
      if (settled[slot]) continue;
      settled[slot] = true;
      step->released.push_back(slot);
    }
}

size_t first_write(const Plan& plan) {
  std::unordered_set<uint32_t> of_inputs(plan.inputs.begin(), plan.inputs.end());
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const auto& action = plan.steps[i].action;
    if (const auto* view = std::get_if<ViewStep>(&action); view && of_inputs.count(view->base))
      of_inputs.insert(view->slot);
    if (const auto* copy = std::get_if<CopyStep>(&action); copy && of_inputs.count(copy->target))
      return i;
    if (const auto* command = std::get_if<OperatorStep>(&action))
      for (size_t r = command->slots.size() - command->results; r < command->slots.size(); ++r)
        if (of_inputs.count(command->slots[r])) return i;
    if (const auto* kernel = std::get_if<KernelStep>(&action))
      for (const BufferLocation& place : kernel->pointers)
        if (place.written && place.has_slot() && of_inputs.count(place.slot)) return i;
  }
  return plan.steps.size();
}

std::string to_string(const Plan& plan) {
  std::string text;
  for (const PlanStep& step : plan.steps) {
    text += std::visit(Printer{}, step.action);
    if (!step.released.empty())
      text += fmt::format("  # frees %{}", fmt::join(step.released, ", %"));
    text += "\n";
  }
  if (plan.commands > 0) text += fmt::format("{} commands, ", plan.commands);
  return text + fmt::format("{} kernels, {} library calls, {} copies, arena of {} bytes\n",
                            plan.kernels, plan.library_calls, plan.copies, plan.arena_bytes);
}

}  // namespace torch_lazy
