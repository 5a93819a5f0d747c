#include "device.h"

#include <torch/library.h>

#include <torch_lazy/backend/runtime_registration.h>

namespace accelerator {

Device& device() {
  static Device& instance = *new Device();  // Never destroyed: tensors may outlive whatever would.
  return instance;
}

/// For Python, as torch.ops.torch_accelerator.
TORCH_LIBRARY(torch_accelerator, library) {
  library.def("synchronize() -> ()", [] { device().synchronize(); });
#if ACCELERATOR_EAGER
  library.def("register_device() -> ()", [] { torch_lazy::register_runtime(device()); });
#endif
  library.def(
      "inject(int command, int allocation, int delay, int seed) -> ()",
      [](std::int64_t command, std::int64_t allocation, std::int64_t delay, std::int64_t seed) {
        device().inject({command, allocation, delay, std::minstd_rand(seed)});
      });
}

}  // namespace accelerator
