#include "plan/run_schedule.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

namespace torch_lazy {
namespace {

bool is_kernel(const PlanStep& step) {
  return std::holds_alternative<KernelStep>(step.action);
}

// What gives the device something else than a kernel, which may read what kernels before it write.
bool is_other_command(const PlanStep& step) {
  return !is_kernel(step) && !std::holds_alternative<AllocateStep>(step.action) &&
         !std::holds_alternative<ConstantStep>(step.action) &&
         !std::holds_alternative<ViewStep>(step.action);
}

std::vector<bool> ends_of_sequences(const Plan& plan, size_t most_together) {
  std::vector<bool> ends(plan.steps.size());
  size_t together = 0;
  std::optional<size_t> last;  // kernel that does not end a sequence yet
  const auto end = [&] {
    if (last) ends[*last] = true;
    last.reset();
    together = 0;
  };
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (is_other_command(plan.steps[i])) end();
    if (!is_kernel(plan.steps[i])) continue;
    last = i;
    if (++together >= most_together) end();
  }
  end();
  return ends;
}

size_t nodes_of(const PlanStep& step) {
  int64_t last = step.origin;
  for (const int64_t operation : step.operations) last = std::max(last, operation);
  return size_t(last) + 1;
}

// A check does, and so may a copy of the host's memory.
bool waits_for_device(const PlanStep& step) {
  const auto* const copy = std::get_if<CopyStep>(&step.action);
  return std::holds_alternative<CheckStep>(step.action) || (copy && copy->from_host);
}

std::vector<RunSchedule::Stage> early_stages(const Plan& plan,
                                             const std::vector<bool>& ends_sequence) {
  std::unordered_map<uint32_t, uint32_t> not_asked_for;  // of them, by slot
  for (size_t i = 0; i < plan.inputs.size(); ++i)
    not_asked_for.emplace(plan.inputs[i], uint32_t(i));
  std::vector<RunSchedule::Stage> stages;
  RunSchedule::Stage next{};
  for (size_t i = 0; i < std::min(plan.first_write, plan.steps.size()); ++i) {
    const PlanStep& step = plan.steps[i];
    if (waits_for_device(step)) break;
    next.nodes = std::max(next.nodes, nodes_of(step));
    for (const uint32_t slot : slots_of(step))
      if (const auto found = not_asked_for.find(slot); found != not_asked_for.end()) {
        next.inputs.push_back(found->second);
        not_asked_for.erase(found);
      }
    if (!ends_sequence[i] && !is_other_command(step)) continue;
    next.end = i + 1;
    stages.push_back(next);
    next.inputs.clear();
  }
  return stages;
}

}  // namespace

RunSchedule schedule_run(const Plan& plan, size_t most_together) {
  RunSchedule schedule;
  schedule.launches_after = ends_of_sequences(plan, most_together);
  schedule.early = early_stages(plan, schedule.launches_after);
  return schedule;
}

}  // namespace torch_lazy
