// Initialization, the device, contexts and errors.

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "fake_cuda/device.h"

using torch_lazy::fake_cuda::current_context;
using torch_lazy::fake_cuda::Device;
using torch_lazy::fake_cuda::enter;
using torch_lazy::fake_cuda::Failure;
using torch_lazy::fake_cuda::Needs;

namespace {

constexpr int kDriverVersion = 13000;
constexpr size_t kMemoryBytes = size_t{80} << 30;

// There is one, the primary one.
CUcontext primary_context() {
  static char context;
  return reinterpret_cast<CUcontext>(&context);
}

void check_device(CUdevice device) {
  if (device != 0) throw Failure{CUDA_ERROR_INVALID_DEVICE};
}

// An H100's.
int attribute(CUdevice_attribute which) {
  switch (which) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      return 48 << 10;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      return 32;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return 132;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      return 50 << 20;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      return 2048;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return 9;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return 0;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      return 228 << 10;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      return torch_lazy::fake_cuda::kMostSharedBytes;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
      return 1 << 10;
  }
  throw Failure{CUDA_ERROR_INVALID_VALUE};
}

struct ErrorName {
  CUresult result;
  const char* name;
  const char* text;
};

constexpr ErrorName kErrors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {CUDA_ERROR_MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "too many resources requested for launch"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
};

const ErrorName& error_of(CUresult result) {
  const auto* const found = std::find_if(std::begin(kErrors), std::end(kErrors),
                                         [&](const ErrorName& e) { return e.result == result; });
  if (found == std::end(kErrors)) throw Failure{CUDA_ERROR_INVALID_VALUE};
  return *found;
}

}  // namespace

FAKE_CUDA_EXPORT CUresult cuInit(unsigned flags) {
  return enter(Needs::kNothing, [&] {
    if (flags != 0) throw Failure{CUDA_ERROR_INVALID_VALUE};
    torch_lazy::fake_cuda::note_initialized();
  });
}

FAKE_CUDA_EXPORT CUresult cuDriverGetVersion(int* version) {
  return enter(Needs::kNothing, [&] { *version = kDriverVersion; });
}

// NVIDIA's own NVRTC asks any driver that is loaded for a table of functions that is documented
// nowhere, and calls what it finds. It can do without.
FAKE_CUDA_EXPORT CUresult cuGetExportTable(const void** table, const void*) {
  return enter(Needs::kNothing, [&] {
    *table = nullptr;
    throw Failure{CUDA_ERROR_NOT_FOUND};
  });
}

FAKE_CUDA_EXPORT CUresult cuDeviceGetCount(int* count) {
  return enter(Needs::kInit, [&] { *count = 1; });
}

FAKE_CUDA_EXPORT CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return enter(Needs::kInit, [&] {
    check_device(ordinal);
    *device = ordinal;
  });
}

FAKE_CUDA_EXPORT CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  return enter(Needs::kInit, [&] {
    check_device(device);
    const std::string text = "CUDA emulator";
    if (length <= static_cast<int>(text.size())) throw Failure{CUDA_ERROR_INVALID_VALUE};
    std::memcpy(name, text.c_str(), text.size() + 1);
  });
}

FAKE_CUDA_EXPORT CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  return enter(Needs::kInit, [&] {
    check_device(device);
    *bytes = kMemoryBytes;
  });
}

FAKE_CUDA_EXPORT CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which,
                                               CUdevice device) {
  return enter(Needs::kInit, [&] {
    check_device(device);
    *value = attribute(which);
  });
}

FAKE_CUDA_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return enter(Needs::kInit, [&] {
    check_device(device);
    *context = primary_context();
  });
}

FAKE_CUDA_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return enter(Needs::kInit, [&] { check_device(device); });
}

FAKE_CUDA_EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
  return enter(Needs::kInit, [&] {
    if (context != nullptr && context != primary_context()) {
      throw Failure{CUDA_ERROR_INVALID_CONTEXT};
    }
    current_context() = context;
  });
}

FAKE_CUDA_EXPORT CUresult cuCtxGetCurrent(CUcontext* context) {
  return enter(Needs::kInit, [&] { *context = current_context(); });
}

FAKE_CUDA_EXPORT CUresult cuCtxGetDevice(CUdevice* device) {
  return enter(Needs::kContext, [&] { *device = 0; });
}

FAKE_CUDA_EXPORT CUresult cuCtxSynchronize() {
  return enter(Needs::kContext, [] { Device::get().wait_for_all(); });
}

FAKE_CUDA_EXPORT CUresult cuGetErrorName(CUresult error, const char** name) {
  return enter(Needs::kNothing, [&] { *name = error_of(error).name; });
}

FAKE_CUDA_EXPORT CUresult cuGetErrorString(CUresult error, const char** text) {
  return enter(Needs::kNothing, [&] { *text = error_of(error).text; });
}

// The exported symbol of the name, which is that of the newest version of the function.
FAKE_CUDA_EXPORT CUresult cuGetProcAddress_v2(const char* symbol, void** function, int, uint64_t,
                                              int* status) {
  Dl_info own;
  dladdr(reinterpret_cast<void*>(&cuGetProcAddress_v2), &own);
  void* const library = dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  *function = dlsym(library, (std::string(symbol) + "_v2").c_str());
  if (*function == nullptr) *function = dlsym(library, symbol);
  dlclose(library);
  if (status != nullptr) *status = *function != nullptr ? 0 : 1;
  return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

// For tests, in no real driver: what the emulator has found since the process began, and a device
// that is whole again. The text is valid until the next call.
FAKE_CUDA_EXPORT const char* fake_cuda_take_findings() {
  static std::string taken;
  enter(Needs::kNothing, [] {
    Device& device = Device::get();
    taken = std::exchange(device.findings, "");
    device.error = CUDA_SUCCESS;
  });
  return taken.c_str();
}

// For tests: that many allocations, launches and graphs succeed before one fails; negative: all do.
// Returns whether a failure that was asked for before has not come.
FAKE_CUDA_EXPORT bool fake_cuda_fail(int64_t allocations, int64_t launches, int64_t graphs) {
  bool awaited = false;
  enter(Needs::kNothing, [&] {
    const Device& device = Device::get();
    awaited = device.allocations_before_failure >= 0 || device.launches_before_failure >= 0 ||
              device.graphs_before_failure >= 0;
    Device::get().allocations_before_failure = allocations;
    Device::get().launches_before_failure = launches;
    Device::get().graphs_before_failure = graphs;
  });
  return awaited;
}

// For tests: another thread begins to capture a graph, or ends. Returns whether the capture that
// was under way was spoilt.
FAKE_CUDA_EXPORT bool fake_cuda_capture(bool capturing) {
  bool spoiled = false;
  enter(Needs::kNothing, [&] {
    spoiled = std::exchange(Device::get().capture_spoiled, false);
    Device::get().capturing = capturing;
  });
  return spoiled;
}

// For tests: from now on the device answers everything with an error, as after a fault in a kernel
// of whomever.
FAKE_CUDA_EXPORT void fake_cuda_lose_device() {
  enter(Needs::kNothing, [] { Device::get().error = CUDA_ERROR_LAUNCH_FAILED; });
}
