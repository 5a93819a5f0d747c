// Runs the kernels of a plan on a device of CUDA.
#pragma once

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/kernel_library.h"
#include "codegen/launch_shape.h"
#include "plan/executor.h"

namespace torch_lazy::cuda {

struct CudaKernel {
  std::shared_ptr<const LoadedKernel> code;
  codegen::LaunchShape shape;
  std::vector<uint8_t> immediate_bytes;  // by buffer; see codegen/launch_arguments.h
  std::string name;
};

// Launches on the current stream and returns; whoever needs a result on the host waits for that.
class CudaLauncher final : public Launcher {
 public:
  // `kernels` are those of the plan's kernel steps, in order.
  CudaLauncher(c10::Device device, std::vector<CudaKernel> kernels);

  at::Tensor empty(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                   c10::ScalarType dtype) const override;
  void* failure_word() const override;
  void launch(const KernelStep& step, c10::ArrayRef<void*> pointers) const override;

 private:
  const std::vector<CudaKernel> kernels_;
  const c10::impl::DeviceGuardImplInterface& guard_;
};

}  // namespace torch_lazy::cuda
