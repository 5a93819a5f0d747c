#include "plan/executor.h"

#include <ATen/ops/any.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/lt.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/config.h"
#include "base/debug.h"
#include "plan/plan_run.h"

namespace torch_lazy {
namespace {

using Clock = std::chrono::steady_clock;

class StagedPlanRun final : public StagedRun {
 public:
  StagedPlanRun(const Plan& plan, const RunSchedule& schedule, Launcher& launcher)
      : run_(plan, schedule, launcher), next_(schedule.early.begin()), end_(schedule.early.end()) {}
  ~StagedPlanRun() override {
    if (!finished_) run_.give_up();
  }

  bool advance(size_t nodes, c10::ArrayRef<at::Tensor> inputs) override {
    run_.give(inputs);
    const auto is_ready = [&](const RunSchedule::Stage& stage) {
      return stage.nodes <= nodes &&
             std::all_of(stage.inputs.begin(), stage.inputs.end(),
                         [&](uint32_t input) { return inputs[input].defined(); });
    };
    const auto before = next_;
    while (next_ != end_ && is_ready(*next_)) run_.advance((next_++)->end);
    return next_ != before;
  }

  RunResult finish(c10::ArrayRef<at::Tensor> inputs) override {
    finished_ = true;
    run_.give(inputs);
    return run_.finish(nullptr);
  }

 private:
  PlanRun run_;
  bool finished_ = false;
  std::vector<RunSchedule::Stage>::const_iterator next_, end_;
};

}  // namespace

at::Tensor Launcher::empty(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                           c10::ScalarType dtype) const {
  return at::empty_strided(sizes, strides, at::TensorOptions(dtype).device(device_));
}

c10::DataPtr Launcher::allocate(size_t bytes) const {
  return c10::GetAllocator(device_.type())->allocate(bytes);
}

bool Launcher::all_within(const at::Tensor& indices, int64_t limit) const {
  return !indices.lt(0).logical_or_(indices.ge(limit)).any().item<bool>();
}

void Launcher::launch(const KernelStep& kernel, c10::ArrayRef<void*>) const {
  TORCH_CHECK(false, "there is nothing that launches ", kernel.name, " on ", device_.str());
}

void Launcher::launch_together(c10::ArrayRef<KernelLaunch>, size_t&) {
  TORCH_CHECK(false, "there is nothing that launches kernels together on ", device_.str());
}

PlanExecutable::PlanExecutable(Plan plan, std::unique_ptr<Launcher> launcher)
    : plan_(std::move(plan)),
      schedule_(schedule_run(plan_, launcher->traits().most_together)),
      launcher_(std::move(launcher)) {}

RunResult PlanExecutable::run(c10::ArrayRef<at::Tensor> inputs) {
  PlanRun run(plan_, schedule_, *launcher_);
  run.give(inputs);
  if (config().debug < kDebugGraphs) [[likely]]
    return run.finish(nullptr);
  StepTimes times;
  const StepObserver observer = [&](const PlanStep&, const StepCost& cost, auto time) {
    times.add(cost, time);
  };
  const Clock::time_point begin = Clock::now();
  RunResult result = run.finish(&observer);
  debug_print(times.report(Clock::now() - begin));
  return result;
}

RunResult PlanExecutable::run_timed(c10::ArrayRef<at::Tensor> inputs,
                                    std::vector<StepTime>& times) {
  times.reserve(times.size() + plan_.steps.size());
  const StepObserver observer = [&](const PlanStep& step, const StepCost&, auto time) {
    using Operations = c10::ArrayRef<int64_t>;
    times.push_back(
        {step.operations.empty() ? Operations(step.origin) : Operations(step.operations), time});
  };
  PlanRun run(plan_, schedule_, *launcher_);
  run.give(inputs);
  return run.finish(&observer);
}

std::unique_ptr<StagedRun> PlanExecutable::begin_run() {
  if (!launcher_->traits().runs_early || schedule_.early.empty()) return nullptr;
  return std::make_unique<StagedPlanRun>(plan_, schedule_, *launcher_);
}

}  // namespace torch_lazy
