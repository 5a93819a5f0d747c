// The device as PyTorch sees it: memory for storages, streams and events, and its hooks.

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "device.h"

namespace accelerator {
namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::Stream;

const Device kDevice(c10::kPrivateUse1, 0);

Stream stream(c10::StreamId id) {
  return Stream(Stream::UNSAFE, kDevice, id);
}

struct Allocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    void* address = accelerator::allocate(bytes);
    return {address, address, &accelerator::free, kDevice};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &accelerator::free; }
  void copy_data(void* destination, const void* source, std::size_t bytes) const override {
    copy(destination, source, bytes);
  }
};

thread_local c10::StreamId current_stream = 0;

/// All streams are names of the one queue, so none has to wait for an event of another.
struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::kPrivateUse1; }
  DeviceIndex deviceCount() const noexcept override { return 1; }
  Device getDevice() const override { return kDevice; }
  Device exchangeDevice(Device device) const override {
    TORCH_CHECK(device.index() <= 0, "there is one device accel:0, and no ", device);
    return kDevice;
  }
  void setDevice(Device device) const override { exchangeDevice(device); }
  void uncheckedSetDevice(Device) const noexcept override {}

  Stream getStream(Device) const override { return stream(current_stream); }
  Stream getDefaultStream(Device) const override { return stream(0); }
  Stream getNewStream(Device, int) const override {
    static std::atomic<c10::StreamId> streams = 0;
    return stream(++streams);
  }
  Stream getStreamFromGlobalPool(Device, bool) const override { return getNewStream(kDevice, 0); }
  Stream exchangeStream(Stream next) const override {
    return stream(std::exchange(current_stream, next.id()));
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
  DeviceIndex deviceCount() const override { return 1; }
  Device getDeviceFromPtr(void*) const override { return kDevice; }
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
