#include "fake_cuda/aten_driver.h"

#include <c10/util/Exception.h>

namespace torch_lazy::fake_cuda {

void ensure_context() {
  static const CUresult initialized = cuInit(0);
  check(initialized);
  CUcontext context = nullptr;
  check(cuCtxGetCurrent(&context));
  if (context != nullptr) return;
  check(cuDevicePrimaryCtxRetain(&context, 0));
  check(cuCtxSetCurrent(context));
}

void check(CUresult result) {
  if (result == CUDA_SUCCESS) return;
  const char* text = "unknown error";
  cuGetErrorString(result, &text);
  const std::string message = c10::str("CUDA error: ", text);
  const c10::SourceLocation here{__func__, __FILE__, __LINE__};
  if (result == CUDA_ERROR_OUT_OF_MEMORY) throw c10::OutOfMemoryError(here, message);
  throw c10::AcceleratorError(here, result, message);
}

c10::Device checked_device(c10::DeviceIndex index) {
  TORCH_CHECK(index <= 0, "CUDA error: invalid device ordinal: there is no cuda:", int(index),
              ", this machine has one device");
  return {c10::kCUDA, 0};
}

}  // namespace torch_lazy::fake_cuda
