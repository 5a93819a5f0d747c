// The fake driver and NVRTC as tests call them, and a device with a kernel that adds a number.
#pragma once

#include <gtest/gtest.h>

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "fake_cuda/cuda_api.h"

namespace torch_lazy::tests {

// A library of the build's folder fake_cuda.
class Library {
 public:
  explicit Library(const char* name)
      : handle_(dlopen(
            (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "fake_cuda" / name)
                .c_str(),
            RTLD_NOW | RTLD_LOCAL)) {
    EXPECT_NE(handle_, nullptr) << dlerror();
  }

  // Arguments have to have the function's own types.
  template <class Result = int, class... Arguments>
  Result call(const char* function, Arguments... arguments) const {
    return reinterpret_cast<Result (*)(Arguments...)>(dlsym(handle_, function))(arguments...);
  }

 private:
  void* handle_;
};

inline const Library& cuda() {
  static const Library library("libcuda.so.1");
  return library;
}

inline const Library& nvrtc() {
  static const Library library("libnvrtc.so");
  return library;
}

struct Compiled {
  int result;
  std::string log, cubin;
};

inline Compiled compile(const std::string& source,
                        const std::vector<const char*>& options = {"--gpu-architecture=sm_90"}) {
  void* program = nullptr;
  nvrtc().call("nvrtcCreateProgram", &program, source.c_str(), "kernel.cu", 0,
               static_cast<const char* const*>(nullptr), static_cast<const char* const*>(nullptr));
  Compiled compiled;
  compiled.result = nvrtc().call("nvrtcCompileProgram", program, static_cast<int>(options.size()),
                                 options.data());
  size_t bytes = 0;
  nvrtc().call("nvrtcGetProgramLogSize", program, &bytes);
  compiled.log.resize(bytes);
  nvrtc().call("nvrtcGetProgramLog", program, compiled.log.data());
  nvrtc().call("nvrtcGetCUBINSize", program, &bytes);
  compiled.cubin.resize(bytes);
  if (bytes > 0) nvrtc().call("nvrtcGetCUBIN", program, compiled.cubin.data());
  nvrtc().call("nvrtcDestroyProgram", &program);
  return compiled;
}

// y[i] = x[i] + number, for 32 floats.
inline const std::string kAdd =
    "extern \"C\" __global__ void add(const float* x, float* y, float number) {\n"
    "  y[threadIdx.x] = x[threadIdx.x] + number;\n"
    "}\n";
constexpr size_t kBytes = 32 * sizeof(float);

class FakeCuda : public ::testing::Test {
 protected:
  void SetUp() override {
    cuda().call("cuInit", 0u);
    cuda().call("cuDevicePrimaryCtxRetain", &context, 0);
    ASSERT_EQ(cuda().call("cuCtxSetCurrent", context), CUDA_SUCCESS);
    cuda().call<const char*>("fake_cuda_take_findings");
    x = allocate();
    y = allocate();
    cuda().call("cuModuleLoadData", &module, static_cast<const void*>(compile(kAdd).cubin.data()));
    ASSERT_EQ(cuda().call("cuModuleGetFunction", &add, module, "add"), CUDA_SUCCESS);
  }
  void TearDown() override { cuda().call<const char*>("fake_cuda_take_findings"); }

  static CUdeviceptr allocate(size_t bytes = kBytes) {
    CUdeviceptr pointer = 0;
    EXPECT_EQ(cuda().call("cuMemAlloc_v2", &pointer, bytes), CUDA_SUCCESS);
    return pointer;
  }
  static CUstream stream(unsigned flags = 0) {
    CUstream made = nullptr;
    EXPECT_EQ(cuda().call("cuStreamCreate", &made, flags), CUDA_SUCCESS);
    return made;
  }
  static float* pinned(float value) {
    void* memory = nullptr;
    cuda().call("cuMemHostAlloc", &memory, kBytes, 0u);
    std::fill_n(static_cast<float*>(memory), 32, value);
    return static_cast<float*>(memory);
  }
  static int upload(CUdeviceptr to, const float* from, CUstream on) {
    return cuda().call("cuMemcpyHtoDAsync_v2", to, static_cast<const void*>(from), kBytes, on);
  }
  static float first(CUdeviceptr from) {
    std::vector<float> values(32);
    cuda().call("cuMemcpyDtoH_v2", static_cast<void*>(values.data()), from, kBytes);
    return values[0];
  }
  int launch(CUdeviceptr from, CUdeviceptr to, float number, CUstream on = nullptr,
             unsigned threads = 32) const {
    void* parameters[] = {&from, &to, &number};
    return cuda().call("cuLaunchKernel", add, 1u, 1u, 1u, threads, 1u, 1u, 0u, on,
                       static_cast<void**>(parameters), static_cast<void**>(nullptr));
  }
  static int synchronize() { return cuda().call("cuCtxSynchronize"); }
  static std::string findings() { return cuda().call<const char*>("fake_cuda_take_findings"); }

  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction add = nullptr;
  CUdeviceptr x = 0, y = 0;
  const std::vector<float> ones = std::vector<float>(32, 1.0F);
};

}  // namespace torch_lazy::tests
