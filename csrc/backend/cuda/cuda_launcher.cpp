#include "backend/cuda/cuda_launcher.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/Allocator.h>

#include <utility>

#include "backend/cuda/driver.h"
#include "backend/cuda/index_failures.h"
#include "codegen/launch_arguments.h"

namespace torch_lazy::cuda {
namespace {

// Kernels in a graph. The device begins with none of them before all are given to it, so that in a
// run that begins early it would wait for a long graph; short ones save less.
constexpr size_t kMostTogether = 32;

}  // namespace

CudaLauncher::CudaLauncher(c10::Device device, std::vector<CudaKernel> kernels)
    : Launcher(device, {.most_together = kMostTogether, .runs_early = true}),
      kernels_(std::move(kernels)),
      guard_(*c10::impl::getDeviceGuardImpl(device.type())) {}

// A run is under the guard of its device, which the allocator asks for the current one.
at::Tensor CudaLauncher::empty(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                               c10::ScalarType dtype) const {
  return at::detail::empty_strided_generic(sizes, strides, c10::GetAllocator(c10::kCUDA),
                                           c10::DispatchKeySet(c10::DispatchKey::CUDA), dtype);
}

void* CudaLauncher::failure_word() const {
  return index_failure_word();
}

void CudaLauncher::enter_thread() const {
  ensure_context(device().index());
}

void CudaLauncher::ask_for_shared_memory() const {
  std::call_once(shared_memory_asked_for_, [this] {
    const DuringCaptures relaxed;
    for (const auto& [code, shape, argument_forms, name] : kernels_) {
      if (shape.shared_bytes > 0)
        allow_shared_bytes(code->kernel, shape.shared_bytes, device().index());
      prefer_shared_memory(code->kernel, shape.shared_bytes, shape.block_x * shape.block_y,
                           device().index());
    }
  });
}

void CudaLauncher::launch(const KernelStep& step, c10::ArrayRef<void*> pointers) const {
  ask_for_shared_memory();
  launch_alone(prepared(step, pointers), current_stream());
}

void CudaLauncher::launch_together(c10::ArrayRef<KernelLaunch> launches, size_t& started) {
  ask_for_shared_memory();
  std::vector<PreparedLaunch> all;
  all.reserve(launches.size());
  for (const KernelLaunch& launch : launches)
    all.push_back(prepared(*launch.step, launch.pointers));
  sequences_[{launches.front().step->index, launches.size()}].launch(all, current_stream(),
                                                                     started);
}

PreparedLaunch CudaLauncher::prepared(const KernelStep& step, c10::ArrayRef<void*> pointers) const {
  const CudaKernel& kernel = kernels_[step.index];
  return {&kernel, codegen::launch_arguments(step.lowered, kernel.argument_forms, pointers),
          step.lowered.work_items};
}

Stream CudaLauncher::current_stream() const {
  return guard_.getStreamNativeHandle(guard_.getStream(device()));
}

}  // namespace torch_lazy::cuda
