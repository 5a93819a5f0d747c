// Runs the kernels of a plan on a device of CUDA.
#pragma once

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "backend/cuda/cuda_kernel.h"
#include "backend/cuda/kernel_sequence.h"
#include "plan/executor.h"

namespace torch_lazy::cuda {

// Launches on the current stream and returns; whoever needs a result on the host waits for that.
class CudaLauncher final : public Launcher {
 public:
  // `kernels` are those of the plan's kernel steps, in order.
  CudaLauncher(c10::Device device, std::vector<CudaKernel> kernels);

  // Gives the thread a context, without which cuBLAS warns.
  void enter_thread() const override;
  at::Tensor empty(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                   c10::ScalarType dtype) const override;
  void* failure_word() const override;
  void launch(const KernelStep& step, c10::ArrayRef<void*> pointers) const override;
  void launch_together(c10::ArrayRef<KernelLaunch> launches, size_t& started) override;

 private:
  // For its kernels, as much as they want, before the first launch.
  void ask_for_shared_memory() const;
  PreparedLaunch prepared(const KernelStep& step, c10::ArrayRef<void*> pointers) const;
  Stream current_stream() const;

  const std::vector<CudaKernel> kernels_;
  mutable std::once_flag shared_memory_asked_for_;
  const c10::impl::DeviceGuardImplInterface& guard_;
  // By the first one's index among the kernels, and how many they are: fewer than in other runs
  // where a run was given up between them. Destroyed before the kernels.
  std::map<std::pair<uint32_t, size_t>, KernelSequence> sequences_;
};

}  // namespace torch_lazy::cuda
