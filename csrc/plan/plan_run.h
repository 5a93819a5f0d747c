// One run of a plan, from its first step to its last, at once or in stages.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/util/SmallVector.h>

#include <chrono>
#include <exception>
#include <forward_list>
#include <functional>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "backend/late_failure.h"
#include "offload/mirrored_storage.h"
#include "plan/executor.h"
#include "plan/plan.h"
#include "plan/run_schedule.h"
#include "plan/step.h"
#include "plan/step_times.h"
#include "profile/running_window.h"

namespace torch_lazy {

// Is told what a step took. The cost has a name only where steps are shown.
using StepObserver =
    std::function<void(const PlanStep&, const StepCost&, std::chrono::nanoseconds)>;

// Belongs to one thread at a time, which is in a StepThreadState. Plan, schedule and launcher
// outlive it.
class PlanRun {
 public:
  PlanRun(const Plan& plan, const RunSchedule& schedule, Launcher& launcher);

  // The run's inputs, in order; those that are not known yet are undefined. What was given before
  // is the same.
  void give(c10::ArrayRef<at::Tensor> inputs);
  // Does the steps before `end` that are not done yet. What fails is kept for finish().
  void advance(size_t end) { proceed(end, nullptr); }
  // Does the rest. All inputs are given. `observer` may be null.
  RunResult finish(const StepObserver* observer);
  // Nothing of it is used: what the device finds wrong with it is not told.
  void give_up();

 private:
  void proceed(size_t end, const StepObserver* observer);
  void fail(std::exception_ptr error) noexcept;
  void release(const PlanStep& step);
  void launch_pending();

  void perform(const PlanStep& step) {
    std::visit([&](const auto& action) { perform(action); }, step.action);
  }
  void perform_watched(const PlanStep& step, const StepObserver* observer);
  void perform(const AllocateStep& step);
  void perform(const ConstantStep& step);
  void perform(const ViewStep& step);
  void perform(const CopyStep& step);
  void perform(const CheckStep& step);
  void perform(const LibraryStep& step);
  void perform(const OperatorStep& step);
  void perform(const KernelStep& step);

  void wait_for_device() const;
  at::Tensor empty(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype);
  void lay_out(const LibraryStep::Output& output);
  Access access(const OperatorStep& step, size_t index) const;
  void own(uint32_t slot);
  void* address_of(const BufferLocation& place);
  void use_on_device(const KernelStep& step, DeviceAddresses& addresses);

  const Plan& plan_;
  const RunSchedule& schedule_;
  Launcher& launcher_;
  // Of the thread and the scope that the run is in now, and the settings.
  bool shown_ = false, watched_ = false, blocking_ = false;
  RunningWindow* running_ = nullptr;

  size_t at_ = 0;  // the step that is next, or that failed
  std::exception_ptr error_;
  Values values_;
  StepRunner runner_;
  c10::DataPtr arena_;
  c10::SmallVector<void*, 16> pointers_;

  // Kernels that are to be launched together, and the steps that they are. Until they are, what
  // they read and write is kept: memory that is given back is another thread's, which may give the
  // device work before them.
  std::vector<KernelLaunch> pending_;
  std::vector<size_t> pending_steps_;
  std::vector<at::Tensor> kept_;
  // What launches take by value.
  void* failure_word_ = nullptr;
  std::forward_list<Submission> tickets_;
  std::vector<Submission> checked_;  // whose indices kernels check
};

}  // namespace torch_lazy
