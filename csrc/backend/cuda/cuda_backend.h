// The backend "cuda": windows become plans over kernels that NVRTC compiles and the driver
// launches.
#pragma once

namespace torch_lazy {

// Neither opens a library nor starts a driver.
void register_cuda_backend();

}  // namespace torch_lazy
