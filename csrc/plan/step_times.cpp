#include "plan/step_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "ops/operator_info.h"

namespace torch_lazy {
namespace {

double milliseconds(std::chrono::nanoseconds time) {
  return double(time.count()) / 1e6;
}

}  // namespace

StepCost cost_of(const PlanStep& step, const Values& values) {
  if (const auto* kernel = std::get_if<KernelStep>(&step.action))
    return {kernel->name, kernel->bytes};
  if (const auto* library = std::get_if<LibraryStep>(&step.action))
    return {library->step.op->name, 0};
  if (const auto* command = std::get_if<OperatorStep>(&step.action)) return {command->name, 0};
  if (const auto* copy = std::get_if<CopyStep>(&step.action))
    return {"copy", int64_t(values[copy->source].nbytes() + values[copy->target].nbytes())};
  if (const auto* check = std::get_if<CheckStep>(&step.action))
    return {"check", int64_t(values[check->indices].nbytes())};
  return {};
}

void StepTimes::add(const StepCost& cost, std::chrono::nanoseconds time) {
  if (cost.name.empty()) return;
  Total& total = totals_[cost.name];
  ++total.runs;
  total.bytes += cost.bytes;
  total.time += time;
}

std::string StepTimes::report(std::chrono::nanoseconds of_run) const {
  std::vector<std::pair<std::string, Total>> rows(totals_.begin(), totals_.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.time > b.second.time; });
  size_t width = 0;
  for (const auto& row : rows) width = std::max(width, row.first.size());
  std::string text = fmt::format("run: {:.3f} ms", milliseconds(of_run));
  for (const auto& [name, total] : rows) {
    text += fmt::format("\n  {:{}}  {} {}  {:.3f} ms", name, width, total.runs,
                        total.runs == 1 ? "run" : "runs", milliseconds(total.time));
    if (total.bytes == 0) continue;
    const auto time = double(std::max<int64_t>(total.time.count(), 1));
    text += fmt::format("  {} bytes  {:.2f} GB/s", total.bytes, double(total.bytes) / time);
  }
  return text;
}

}  // namespace torch_lazy
