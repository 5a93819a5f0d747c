// The backend "cuda": windows become plans over kernels that NVRTC compiles and the driver
// launches.
#pragma once

#include "base/api.h"

namespace torch_lazy {

// Neither opens a library nor starts a driver.
TORCH_LAZY_MODULE_API void register_cuda_backend();

}  // namespace torch_lazy
