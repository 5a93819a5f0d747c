// The device as PyTorch sees it: memory for storages, streams and events, and its hooks.

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "device.h"

namespace accelerator {
namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::Stream;

/// Two devices that share memory and queue: enough to tell them apart.
constexpr DeviceIndex kDevices = 2;

thread_local DeviceIndex current_device = 0;
thread_local std::array<c10::StreamId, kDevices> current_streams{};

Device device(DeviceIndex index) {
  return Device(c10::kPrivateUse1, index < 0 ? current_device : index);
}

Stream stream(Device of, c10::StreamId id) {
  return Stream(Stream::UNSAFE, device(of.index()), id);
}

struct Allocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    void* address = accelerator::allocate(bytes);
    return {address, address, &accelerator::free, device(-1)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &accelerator::free; }
  void copy_data(void* destination, const void* source, std::size_t bytes) const override {
    copy(destination, source, bytes);
  }
};

/// All streams are names of the one queue, so none has to wait for an event of another.
struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::kPrivateUse1; }
  DeviceIndex deviceCount() const noexcept override { return kDevices; }
  Device getDevice() const override { return device(-1); }
  Device exchangeDevice(Device next) const override {
    TORCH_CHECK(next.index() < kDevices, "there are devices accel:0 and accel:1, and no ", next);
    return device(std::exchange(current_device, device(next.index()).index()));
  }
  void setDevice(Device next) const override { exchangeDevice(next); }
  void uncheckedSetDevice(Device next) const noexcept override { current_device = next.index(); }

  Stream getStream(Device of) const override {
    return stream(of, current_streams.at(device(of.index()).index()));
  }
  Stream getDefaultStream(Device of) const override { return stream(of, 0); }
  Stream getNewStream(Device of, int) const override {
    static std::atomic<c10::StreamId> streams = 0;
    return stream(of, ++streams);
  }
  Stream getStreamFromGlobalPool(Device of, bool) const override { return getNewStream(of, 0); }
  Stream exchangeStream(Stream next) const override {
    return stream(next.device(), std::exchange(current_streams.at(next.device_index()), next.id()));
  }
  bool queryStream(const Stream&) const override { return query(accelerator::record()); }
  void synchronizeStream(const Stream&) const override { synchronize(); }
  void synchronizeDevice(DeviceIndex) const override { synchronize(); }

  // An event is its number in place of an address; null is one that was not recorded.
  void record(void** event, const Stream&, DeviceIndex, c10::EventFlag) const override {
    *event = reinterpret_cast<void*>(accelerator::record());
  }
  void block(void*, const Stream&) const override {}
  bool queryEvent(void* event) const override { return query(reinterpret_cast<Event>(event)); }
  void synchronizeEvent(void* event) const override { wait(reinterpret_cast<Event>(event)); }
};

/// The CPU's kernels draw, hence the CPU's generators; and the device reaches all host memory,
/// hence all of it counts as pinned.
struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const override { return kDevices; }
  Device getDeviceFromPtr(void*) const override { return device(-1); }
  const at::Generator& getDefaultGenerator(DeviceIndex) const override {
    return at::detail::getDefaultCPUGenerator();
  }
  at::Generator getNewGenerator(DeviceIndex) const override {
    return at::make_generator<at::CPUGeneratorImpl>();
  }
  bool isPinnedPtr(const void*) const override { return true; }
  c10::Allocator* getPinnedMemoryAllocator() const override { return c10::GetAllocator(c10::kCPU); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    auto memory = storage.allocator()->allocate(bytes);
    copy(memory.get(), storage.data(), std::min(bytes, storage.nbytes()));
    storage.set_data_ptr_noswap(std::move(memory));
    storage.set_nbytes(bytes);
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)
[[maybe_unused]] const bool registered = [] {
  static Allocator allocator;
  c10::SetAllocator(c10::kPrivateUse1, &allocator);
  at::RegisterPrivateUse1HooksInterface(new Hooks);  // PyTorch keeps it for good.
  return true;
}();

}  // namespace
}  // namespace accelerator
