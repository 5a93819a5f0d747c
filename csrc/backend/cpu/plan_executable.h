// A plan with compiled kernels: what a compiled window is on the CPU.
#pragma once

#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/kernel_compiler.h"
#include "plan/plan.h"

namespace torch_lazy {

struct PlanKernel {
  std::shared_ptr<const CompiledKernel> code;
  int64_t scratch_bytes = 0;  // of each thread that runs it
};

class PlanExecutable final : public Executable {
 public:
  // `kernels` are those of the plan's kernel steps, in order.
  PlanExecutable(Plan plan, std::vector<PlanKernel> kernels);

  RunResult run(const RunArguments& arguments) override;
  int64_t workspace_bytes() const override { return plan_.arena_bytes; }

 private:
  class Run;

  const Plan plan_;
  const std::vector<PlanKernel> kernels_;
};

}  // namespace torch_lazy
