// Memory and copies. Copies happen when the stream's work is done; from memory that the host may
// change meanwhile only where it is pinned, as with the real driver.

#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "fake_cuda/device.h"

using torch_lazy::fake_cuda::Device;
using torch_lazy::fake_cuda::enter;
using torch_lazy::fake_cuda::Failure;
using torch_lazy::fake_cuda::Needs;

namespace {

constexpr size_t kAlignment = 256;

char* host_address(CUdeviceptr pointer) {
  return reinterpret_cast<char*>(pointer);
}

torch_lazy::simt::Region& region_of(CUdeviceptr pointer, size_t bytes) {
  auto* const region = Device::get().memory.find(host_address(pointer));
  if (region == nullptr || !region->holds(host_address(pointer), bytes)) {
    throw std::invalid_argument(std::to_string(bytes) + " bytes at " +
                                Device::get().memory.describe(host_address(pointer)));
  }
  return *region;
}

CUdeviceptr allocate(size_t bytes) {
  static int64_t count = 0;
  torch_lazy::fake_cuda::fail_if_due(Device::get().allocations_before_failure,
                                     CUDA_ERROR_OUT_OF_MEMORY);
  if (bytes == 0) throw Failure{CUDA_ERROR_INVALID_VALUE};
  return reinterpret_cast<CUdeviceptr>(
      Device::get().memory.allocate(bytes, kAlignment, "allocation " + std::to_string(count++)));
}

void copy_to_device(CUdeviceptr to, const void* from, size_t bytes) {
  region_of(to, bytes);
  std::memcpy(host_address(to), from, bytes);
  Device::get().memory.mark_initialized(host_address(to), bytes);
}

// With what is known of the bytes.
void copy_on_device(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  auto& target = region_of(to, bytes);
  auto& source = region_of(from, bytes);
  std::memmove(host_address(to), host_address(from), bytes);
  std::memmove(target.initialized.data() + (host_address(to) - target.begin),
               source.initialized.data() + (host_address(from) - source.begin), bytes);
}

void fill(CUdeviceptr to, unsigned char value, size_t bytes) {
  region_of(to, bytes);
  std::memset(host_address(to), value, bytes);
  Device::get().memory.mark_initialized(host_address(to), bytes);
}

// Work of a stream that is waited for before the call returns.
void do_now(CUstream handle, std::function<void()> work) {
  CUstream_st& stream = Device::get().stream(handle);
  Device::get().enqueue(stream, std::move(work));
  Device::get().wait_for(stream, stream.enqueued);
}

void do_later(CUstream handle, std::function<void()> work) {
  Device::get().enqueue(Device::get().stream(handle), std::move(work));
}

}  // namespace

FAKE_CUDA_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t bytes) {
  return enter(Needs::kContext, [&] { *pointer = allocate(bytes); });
}

// Waits for the device, as the real one does.
FAKE_CUDA_EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer) {
  return enter(Needs::kContext, [&] {
    if (pointer == 0) return;
    Device::get().wait_for_all();
    Device::get().memory.free(host_address(pointer));
  });
}

FAKE_CUDA_EXPORT CUresult cuMemAllocAsync(CUdeviceptr* pointer, size_t bytes, CUstream stream) {
  return enter(Needs::kContext, [&] {
    Device::get().stream(stream);
    *pointer = allocate(bytes);
  });
}

FAKE_CUDA_EXPORT CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  return enter(Needs::kContext, [&] {
    do_later(stream, [=] { Device::get().memory.free(host_address(pointer)); });
  });
}

// Kernels can touch what is mapped, and that alone.
FAKE_CUDA_EXPORT CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  return enter(Needs::kContext, [&] {
    Device& device = Device::get();
    std::unique_ptr<char[]> memory;
    if ((flags & CU_MEMHOSTALLOC_DEVICEMAP) != 0) {
      torch_lazy::fake_cuda::forbid_while_capturing();
      *pointer = device.memory.allocate(bytes, 512, "mapped memory of the host");
      device.memory.mark_initialized(*pointer, bytes);
    } else {
      memory = std::make_unique<char[]>(bytes);
      *pointer = memory.get();
    }
    device.pinned_bytes.emplace(static_cast<const char*>(*pointer), bytes);
    device.pinned.emplace(static_cast<const char*>(*pointer), std::move(memory));
  });
}

FAKE_CUDA_EXPORT CUresult cuMemFreeHost(void* pointer) {
  return enter(Needs::kContext, [&] {
    Device::get().wait_for_all();
    const auto found = Device::get().pinned.find(static_cast<const char*>(pointer));
    if (found == Device::get().pinned.end()) throw Failure{CUDA_ERROR_INVALID_VALUE};
    if (!found->second) Device::get().memory.free(pointer);
    Device::get().pinned.erase(found);
    Device::get().pinned_bytes.erase(static_cast<const char*>(pointer));
  });
}

FAKE_CUDA_EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  return enter(Needs::kContext, [&] { do_now(nullptr, [=] { copy_to_device(to, from, bytes); }); });
}

FAKE_CUDA_EXPORT CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  return enter(Needs::kContext, [&] {
    region_of(from, bytes);
    do_now(nullptr, [=] { std::memcpy(to, host_address(from), bytes); });
  });
}

FAKE_CUDA_EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return enter(Needs::kContext,
               [&] { do_later(nullptr, [=] { copy_on_device(to, from, bytes); }); });
}

FAKE_CUDA_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes,
                                               CUstream stream) {
  return enter(Needs::kContext, [&] {
    region_of(to, bytes);
    if (Device::get().is_pinned(from, bytes)) {
      do_later(stream, [=] { copy_to_device(to, from, bytes); });
      return;
    }
    const char* const begin = static_cast<const char*>(from);
    do_later(stream, [=, copy = std::vector<char>(begin, begin + bytes)] {
      copy_to_device(to, copy.data(), bytes);
    });
  });
}

FAKE_CUDA_EXPORT CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes,
                                               CUstream stream) {
  return enter(Needs::kContext, [&] {
    region_of(from, bytes);
    auto copy = [=] { std::memcpy(to, host_address(from), bytes); };
    Device::get().is_pinned(to, bytes) ? do_later(stream, copy) : do_now(stream, copy);
  });
}

FAKE_CUDA_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                               CUstream stream) {
  return enter(Needs::kContext, [&] {
    region_of(to, bytes);
    region_of(from, bytes);
    do_later(stream, [=] { copy_on_device(to, from, bytes); });
  });
}

FAKE_CUDA_EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes,
                                          CUstream stream) {
  return enter(Needs::kContext, [&] {
    region_of(to, bytes);
    do_later(stream, [=] { fill(to, value, bytes); });
  });
}

// For who runs functions of the host on the device's memory: they read these bytes, or write them.
// No entry point of CUDA's.
FAKE_CUDA_EXPORT CUresult fake_cuda_access_from_host(CUdeviceptr begin, size_t bytes, int writes) {
  return enter(Needs::kContext, [&] {
    auto& memory = Device::get().memory;
    const auto* const region = memory.find(host_address(begin));
    if (region != nullptr && region->holds(host_address(begin), bytes)) {
      if (writes != 0) memory.mark_initialized(host_address(begin), bytes);
      return;
    }
    torch_lazy::simt::Report report;
    report.findings.push_back({torch_lazy::simt::Defect::kOutOfBounds,
                               (writes != 0 ? "writes " : "reads ") + std::to_string(bytes) +
                                   " bytes at " + memory.describe(host_address(begin))});
    Device::get().take("of the host", report);
  });
}
