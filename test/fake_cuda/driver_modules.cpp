// Images, kernels and launches. An image is what the fake NVRTC makes: the source.

#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "fake_cuda/image.h"
#include "fake_cuda/kernel_work.h"

namespace simt = torch_lazy::simt;
using torch_lazy::fake_cuda::Device;
using torch_lazy::fake_cuda::enter;
using torch_lazy::fake_cuda::Failure;
using torch_lazy::fake_cuda::KernelWork;
using torch_lazy::fake_cuda::kImageMagic;
using torch_lazy::fake_cuda::Needs;

struct CUmod_st {
  std::shared_ptr<const simt::Program> program;
  std::map<std::string, CUfunc_st> functions;
};

namespace {

CUmod_st* load(const void* image) {
  torch_lazy::fake_cuda::forbid_while_capturing();
  const std::string text = static_cast<const char*>(image);
  const std::string magic = kImageMagic;
  if (text.compare(0, magic.size(), magic) != 0) throw Failure{CUDA_ERROR_INVALID_IMAGE};
  auto module = std::make_unique<CUmod_st>();
  module->program = simt::Program::compile(text.substr(magic.size()));
  const simt::Module& content = module->program->module();
  for (int64_t i = 0; i < content.kernel_count; ++i) {
    const char* const name = content.kernels[i].name;
    module->functions.emplace(name, CUfunc_st{module->program, name});
  }
  return module.release();
}

CUfunc_st* find(CUmod_st& module, const char* name) {
  const auto found = module.functions.find(name);
  if (found == module.functions.end()) throw Failure{CUDA_ERROR_NOT_FOUND};
  return &found->second;
}

}  // namespace

FAKE_CUDA_EXPORT CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return enter(Needs::kContext, [&] { *module = load(image); });
}

FAKE_CUDA_EXPORT CUresult cuModuleGetFunction(CUfunction* function, CUmodule module,
                                              const char* name) {
  return enter(Needs::kContext, [&] { *function = find(*module, name); });
}

// Work that was launched keeps the code.
FAKE_CUDA_EXPORT CUresult cuModuleUnload(CUmodule module) {
  return enter(Needs::kContext, [&] {
    Device::get().wait_for_all();
    delete module;
  });
}

// Needs no context, so that a thread that only compiles can do it.
FAKE_CUDA_EXPORT CUresult cuLibraryLoadData(CUlibrary* library, const void* image, void*, void**,
                                            unsigned, void*, void**, unsigned) {
  return enter(Needs::kInit, [&] { *library = reinterpret_cast<CUlibrary>(load(image)); });
}

FAKE_CUDA_EXPORT CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library,
                                             const char* name) {
  return enter(Needs::kInit, [&] {
    *kernel = reinterpret_cast<CUkernel>(find(*reinterpret_cast<CUmodule>(library), name));
  });
}

FAKE_CUDA_EXPORT CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  return enter(Needs::kContext, [&] { *function = reinterpret_cast<CUfunction>(kernel); });
}

FAKE_CUDA_EXPORT CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute,
                                               CUkernel kernel, CUdevice device) {
  return enter(Needs::kInit, [&] {
    if (device != 0) throw Failure{CUDA_ERROR_INVALID_DEVICE};
    const auto* const function = reinterpret_cast<CUfunction>(kernel);
    const size_t declared = simt::static_shared_bytes(*function->program, function->name);
    switch (attribute) {
      case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = static_cast<int>(declared);
        return;
      case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = static_cast<int>(function->most_shared_bytes - declared);
        return;
      case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *value = function->shared_percent;
        return;
    }
    throw Failure{CUDA_ERROR_INVALID_VALUE};
  });
}

// As on a device: what the source declares and what is asked for have to fit together.
FAKE_CUDA_EXPORT CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value,
                                               CUkernel kernel, CUdevice device) {
  return enter(Needs::kInit, [&] {
    if (device != 0) throw Failure{CUDA_ERROR_INVALID_DEVICE};
    auto* const function = reinterpret_cast<CUfunction>(kernel);
    if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) {
      if (value < -1 || value > 100) throw Failure{CUDA_ERROR_INVALID_VALUE};
      function->shared_percent = value;
      return;
    }
    const size_t bytes =
        static_cast<size_t>(value) + simt::static_shared_bytes(*function->program, function->name);
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
        bytes > torch_lazy::fake_cuda::kMostSharedBytes) {
      throw Failure{CUDA_ERROR_INVALID_VALUE};
    }
    function->most_shared_bytes = bytes;
  });
}

FAKE_CUDA_EXPORT CUresult cuLibraryUnload(CUlibrary library) {
  return enter(Needs::kInit, [&] {
    torch_lazy::fake_cuda::forbid_while_capturing();
    Device::get().wait_for_all();
    delete reinterpret_cast<CUmodule>(library);
  });
}

FAKE_CUDA_EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                         unsigned grid_z, unsigned block_x, unsigned block_y,
                                         unsigned block_z, unsigned shared_bytes, CUstream stream,
                                         void** parameters, void** extra) {
  return enter(Needs::kContext, [&] {
    if (extra != nullptr) throw Failure{CUDA_ERROR_NOT_SUPPORTED};
    torch_lazy::fake_cuda::fail_if_due(Device::get().launches_before_failure,
                                       CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    const simt::Dim3 grid{grid_x, grid_y, grid_z}, block{block_x, block_y, block_z};
    KernelWork(*function, grid, block, shared_bytes, parameters)
        .enqueue(Device::get().stream(stream));
  });
}

FAKE_CUDA_EXPORT int64_t fake_cuda_launches_short_of_shared_memory() {
  return Device::get().launches_short_of_shared_memory;
}
