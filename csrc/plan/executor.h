// Runs plans, on any device. What a device adds is a Launcher.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/util/SmallVector.h>

#include <memory>
#include <vector>

#include "backend/backend.h"
#include "base/api.h"
#include "plan/plan.h"
#include "plan/run_schedule.h"

namespace torch_lazy {

// A kernel of a plan with the addresses of its buffers.
struct KernelLaunch {
  using Pointers = c10::SmallVector<void*, 8>;
  const KernelStep* step;
  Pointers pointers;
};

// What a run asks of the device. The defaults go through ATen, so that they serve every device that
// ATen has kernels for; a plan of library calls alone needs nothing else.
//
// The one for CUDA launches on the current stream. ATen's allocations belong to the stream, so
// memory that a plan releases while a kernel still reads it goes only to what is launched later on
// that stream. run() then returns before the work is done; outputs are ordered by the stream as
// those of every CUDA operator are. Whatever needs a result on the host waits for the stream:
// all_within() does, by default, through item().
//
// A launcher keeps nothing of a run, and is used by one run at a time unless it is concurrent.
class TORCH_LAZY_API Launcher {
 public:
  struct Traits {
    bool concurrent = false;
    // Kernels that may be given to launch_together() at once.
    size_t most_together = 1;
    // Runs may begin before their windows are recorded, see Executable::begin_run().
    bool runs_early = false;
  };
  explicit Launcher(c10::Device device) : device_(device) {}
  Launcher(c10::Device device, const Traits& traits) : device_(device), traits_(traits) {}
  virtual ~Launcher() = default;

  // Where the tensors of the plan live; library calls go to its kernels.
  c10::Device device() const { return device_; }
  const Traits& traits() const { return traits_; }

  // The calling thread is about to do steps of a run, of which others may have done those before.
  virtual void enter_thread() const {}
  virtual at::Tensor empty(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                           c10::ScalarType dtype) const;
  // Memory of the arena, freed when the run ends.
  virtual c10::DataPtr allocate(size_t bytes) const;
  // Whether all indices, int32 or int64, are in [0, limit).
  virtual bool all_within(const at::Tensor& indices, int64_t limit) const;
  // The address of a word that kernels write a ticket to, the number of a submission
  // (backend/late_failure.h) and one more, where indices are out of range. Null where plans have
  // CheckSteps instead.
  virtual void* failure_word() const { return nullptr; }
  // How many library calls of this thread there were while it was open who does them.
  virtual int64_t trials() const { return 0; }
  // Starts the kernel over all its work items. `pointers` are its buffers in order; sizes and
  // numbers are the step's. That of an immediate buffer (codegen::Buffer::immediate) is an address
  // of the host's, valid during the call: its element goes to the kernel by value. Raises by
  // default: a plan with kernels needs a launcher of its own.
  virtual void launch(const KernelStep& kernel, c10::ArrayRef<void*> pointers) const;
  // Starts kernels that the plan has one after the other with no other command between them, the
  // same ones in every run unless one is given up there. `started`: how many of them are on their
  // way, also where it raises. Only for launchers that may be given several.
  virtual void launch_together(c10::ArrayRef<KernelLaunch> launches, size_t& started);

 private:
  const c10::Device device_;
  const Traits traits_ = {};
};

// A plan that can be run. It keeps nothing of a run. The caller holds a StepThreadState, as the
// runtime does around every backend's executable.
class TORCH_LAZY_API PlanExecutable final : public Executable {
 public:
  PlanExecutable(Plan plan, std::unique_ptr<Launcher> launcher);

  // With debug output of kDebugGraphs and beyond, prints what each step cost.
  RunResult run(c10::ArrayRef<at::Tensor> inputs) override;
  RunResult run_timed(c10::ArrayRef<at::Tensor> inputs, std::vector<StepTime>& times) override;
  std::unique_ptr<StagedRun> begin_run() override;
  bool is_concurrent() const override { return launcher_->traits().concurrent; }

 private:
  const Plan plan_;
  const RunSchedule schedule_;
  const std::unique_ptr<Launcher> launcher_;
};

}  // namespace torch_lazy
