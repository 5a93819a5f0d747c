// Runs the kernels of a plan on the CPU's cores.
#pragma once

#include <memory>
#include <vector>

#include "backend/cpu/kernel_compiler.h"
#include "plan/executor.h"

namespace torch_lazy {

struct CpuKernel {
  std::shared_ptr<const CompiledKernel> code;
  int64_t scratch_bytes = 0;  // of each thread that runs it
};

class CpuLauncher final : public Launcher {
 public:
  // `kernels` are those of the plan's kernel steps, in order.
  explicit CpuLauncher(std::vector<CpuKernel> kernels)
      : Launcher(c10::kCPU, {.concurrent = true}), kernels_(std::move(kernels)) {}

  at::Tensor empty(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                   c10::ScalarType dtype) const override;
  bool all_within(const at::Tensor& indices, int64_t limit) const override;
  int64_t trials() const override;
  void launch(const KernelStep& step, c10::ArrayRef<void*> pointers) const override;

 private:
  const std::vector<CpuKernel> kernels_;
};

}  // namespace torch_lazy
