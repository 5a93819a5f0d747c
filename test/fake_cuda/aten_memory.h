// Memory of the device inside ATen, and pinned memory of the host.
//
// Each allocation is the driver's own: none is cut from another, so that who reads or writes past
// its end, or after it went back, is found. It begins as bytes of 255, NaN in all floating-point
// types, which the emulator takes for uninitialized.
#pragma once

#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Storage.h>

namespace torch_lazy::fake_cuda {

// What is freed goes back when its stream has done what it held then, and so have those that
// recordStream() named.
c10::DeviceAllocator& device_allocator();

// Keeps what is freed: the driver's own free would wait for the device, and do what nobody has
// waited for. A block is given again when the streams are past it that copies named.
at::HostAllocator& host_allocator();
bool is_pinned(const void* address);

// The memory moves, and the bytes that both have are copied in the current stream.
void resize(const c10::Storage& storage, size_t bytes);

}  // namespace torch_lazy::fake_cuda
