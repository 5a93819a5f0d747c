// What the fake NVRTC gives the fake driver.
#pragma once

namespace torch_lazy::fake_cuda {

// An image is this line and the source.
inline constexpr const char* kImageMagic = "// an image of the fake CUDA driver\n";

}  // namespace torch_lazy::fake_cuda
