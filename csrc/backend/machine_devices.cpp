#include "python/machines_accelerator.h"

#include <ATen/DeviceAccelerator.h>
#include <ATen/detail/CUDAHooksInterface.h>

#include <dlfcn.h>

namespace torch_lazy {
namespace {

// The system's, which comes with the driver of a GPU and not with PyTorch. It stays open.
bool has_cuda_driver() {
  static const bool is_there = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != nullptr;
  return is_there;
}

}  // namespace

bool has_accelerator() {
  const auto type = at::accelerator::getAccelerator(/*checked=*/false);
  if (!type) return false;
  // AMD's GPUs are of type CUDA, too.
  const bool of_nvidia = *type == c10::kCUDA && !at::detail::getCUDAHooks().hasROCM();
  return !of_nvidia || has_cuda_driver();
}

}  // namespace torch_lazy
