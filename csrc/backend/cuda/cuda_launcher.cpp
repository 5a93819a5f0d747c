#include "backend/cuda/cuda_launcher.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/Allocator.h>
#include <fmt/format.h>

#include <utility>

#include "backend/cuda/driver.h"
#include "backend/cuda/index_failures.h"
#include "codegen/launch_arguments.h"

namespace torch_lazy::cuda {

CudaLauncher::CudaLauncher(c10::Device device, std::vector<CudaKernel> kernels)
    : Launcher(device),
      kernels_(std::move(kernels)),
      guard_(*c10::impl::getDeviceGuardImpl(device.type())) {}

// A run is under the guard of its device, which the allocator asks for the current one.
at::Tensor CudaLauncher::empty(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                               c10::ScalarType dtype) const {
  return at::detail::empty_strided_generic(sizes, strides, c10::GetAllocator(c10::kCUDA),
                                           c10::DispatchKeySet(c10::DispatchKey::CUDA), dtype);
}

void* CudaLauncher::failure_word() const {
  ensure_context(device().index());
  return index_failure_word();
}

void CudaLauncher::launch(const KernelStep& step, c10::ArrayRef<void*> pointers) const {
  const CudaKernel& kernel = kernels_[step.index];
  std::vector<uint64_t> arguments =
      codegen::launch_arguments(step.lowered, kernel.immediate_bytes, pointers);
  int64_t begin = 0, end = step.lowered.work_items;
  void* parameters[] = {arguments.data(), &begin, &end};
  ensure_context(device().index());
  const Stream stream = guard_.getStreamNativeHandle(guard_.getStream(device()));
  const codegen::LaunchShape& shape = kernel.shape;
  const Result result =
      driver().launch(kernel.code->kernel, shape.grid_x, 1, 1, shape.block_x, shape.block_y, 1,
                      /*shared_bytes=*/0, stream, parameters, nullptr);
  if (result != kSuccess) [[unlikely]]
    check(result, fmt::format("kernel {} cannot be launched", kernel.name));
}

}  // namespace torch_lazy::cuda
