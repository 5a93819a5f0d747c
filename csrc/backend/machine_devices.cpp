#include "backend/machine_devices.h"

#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>

#include <dlfcn.h>

#include <atomic>

namespace torch_lazy {
namespace {

// It comes with the GPU's driver, not with PyTorch, and stays open. One that is not found may be
// once PyTorch has opened it from a place that only its own libraries look in.
bool has_cuda_driver() {
  static constinit std::atomic<bool> is_there{false};
  if (!is_there && dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL)) is_there = true;
  return is_there;
}

}  // namespace

bool machine_may_have(c10::DeviceType type) {
  // AMD's GPUs are of type CUDA, too.
  return type != c10::DeviceType::CUDA || at::Context::hasROCM() || has_cuda_driver();
}

bool machine_has_accelerator() {
  const auto type = at::accelerator::getAccelerator(/*checked=*/false);
  return type && machine_may_have(*type);
}

}  // namespace torch_lazy
