// What the device inside ATen asks of the fake driver: the functions that it calls, errors as
// PyTorch has them, and the stream that work goes to.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <cstddef>

#include "fake_cuda/cuda_api.h"

extern "C" {
CUresult cuInit(unsigned flags);
CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device);
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device);
CUresult cuCtxGetCurrent(CUcontext* context);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxSynchronize();
CUresult cuGetErrorString(CUresult error, const char** text);
CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t bytes);
CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream);
CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned flags);
CUresult cuMemFreeHost(void* pointer);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuStreamCreate(CUstream* stream, unsigned flags);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamQuery(CUstream stream);
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags);
CUresult cuLaunchHostFunc(CUstream stream, void (*function)(void*), void* data);
CUresult cuEventCreate(CUevent* event, unsigned flags);
CUresult cuEventDestroy_v2(CUevent event);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventQuery(CUevent event);
CUresult cuEventSynchronize(CUevent event);
CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end);
CUresult fake_cuda_access_from_host(CUdeviceptr begin, size_t bytes, int writes);
}

namespace torch_lazy::fake_cuda {

// The primary context is this thread's, unless it has another one already: as CUDA's runtime does,
// which PyTorch calls.
void ensure_context();

// Raises the error as PyTorch does.
void check(CUresult result);

// Where this thread's work goes.
CUstream current_stream();

inline CUstream handle_of(c10::Stream stream) {
  return reinterpret_cast<CUstream>(stream.id());
}

inline CUdeviceptr device_address(const void* address) {
  return reinterpret_cast<CUdeviceptr>(address);
}

// There is one, and -1 names it too. Raises for any other.
c10::Device checked_device(c10::DeviceIndex index);

}  // namespace torch_lazy::fake_cuda
