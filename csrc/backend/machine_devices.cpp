#include "backend/machine_devices.h"

#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>

#include <dlfcn.h>

namespace torch_lazy {
namespace {

// It comes with the GPU's driver, not with PyTorch, and stays open. CUDA's runtime, which PyTorch
// asks, may find it in places that only its own libraries look in. Without a driver that has
// nothing to initialize. Looked for once: a search that fails takes 40 µs.
bool has_cuda_driver() {
  static const bool is_there = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) || at::hasCUDA();
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
