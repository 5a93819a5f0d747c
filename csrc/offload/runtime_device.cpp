#include "offload/runtime_device.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/DeviceType.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "backend/execution_device.h"
#include "offload/host_operators.h"
#include "offload/mirrored_storage.h"

namespace torch_lazy {
namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::Stream;

// Set once, when a backend with a runtime is first made.
constinit std::atomic<DeviceRuntime*> registered_runtime{nullptr};

thread_local DeviceIndex current_index = 0;
// Of all devices, since streams are but names here. Nothing to destroy: a thread runs its last
// window while it ends.
thread_local c10::StreamId current_stream = 0;

Device device(DeviceIndex index) {
  return Device(c10::kPrivateUse1, index < 0 ? current_index : index);
}

Stream stream(Device of, c10::StreamId id) {
  return Stream(Stream::UNSAFE, device(of.index()), id);
}

// ---------------------------------------------------------------- memory

constinit std::atomic<int64_t> allocated_bytes{0}, peak_bytes{0};

struct Block {
  void* address;
  int64_t bytes;
};

void free_block(void* context) {
  const auto* const block = static_cast<Block*>(context);
  allocated_bytes.fetch_sub(block->bytes, std::memory_order_relaxed);
  offload_runtime().free(block->address);
  delete block;
}

void count_allocated(int64_t bytes) {
  const int64_t now = allocated_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  int64_t peak = peak_bytes.load(std::memory_order_relaxed);
  while (peak < now && !peak_bytes.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

struct RuntimeAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    const Device here = device(-1);
    if (bytes == 0) return {nullptr, here};
    auto block = std::make_unique<Block>(Block{nullptr, int64_t(bytes)});
    block->address = offload_runtime().allocate(here.index(), bytes);
    count_allocated(block->bytes);
    void* const address = block->address;
    return {address, block.release(), &free_block, here};
  }
  // A block is more than its address.
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    if (bytes > 0) offload_runtime().copy_on_device(current_index, to, from, bytes);
  }
};

// Only a block of its own: a slice of another storage is memory that is mirrored there.
c10::intrusive_ptr<c10::StorageImpl> make_mirrored(c10::StorageImpl::use_byte_size_t by_bytes,
                                                   c10::SymInt bytes, c10::DataPtr memory,
                                                   c10::Allocator* allocator, bool resizable) {
  if (memory.get() != nullptr && memory.get_deleter() != &free_block)
    return c10::make_intrusive<c10::StorageImpl>(by_bytes, std::move(bytes), std::move(memory),
                                                 allocator, resizable);
  return c10::make_intrusive<MirroredStorage>(by_bytes, std::move(bytes), std::move(memory),
                                              allocator, resizable);
}

// ---------------------------------------------------------------- order

// A device has one queue, so a stream is a name and no stream waits for another.
struct RuntimeGuard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::kPrivateUse1; }
  DeviceIndex deviceCount() const noexcept override {
    return has_offload_runtime() ? offload_runtime().device_count() : DeviceIndex(0);
  }
  Device getDevice() const override { return device(-1); }
  Device exchangeDevice(Device next) const override {
    TORCH_CHECK(next.index() < deviceCount(), "there is no device ", next, ": there are ",
                int(deviceCount()));
    return device(std::exchange(current_index, device(next.index()).index()));
  }
  void setDevice(Device next) const override { exchangeDevice(next); }
  void uncheckedSetDevice(Device next) const noexcept override { current_index = next.index(); }

  Stream getStream(Device of) const override { return stream(of, current_stream); }
  Stream getDefaultStream(Device of) const override { return stream(of, 0); }
  Stream getNewStream(Device of, int) const override {
    static std::atomic<c10::StreamId> streams = 0;
    return stream(of, ++streams);
  }
  Stream getStreamFromGlobalPool(Device of, bool) const override { return getNewStream(of, 0); }
  Stream exchangeStream(Stream next) const override {
    return stream(next.device(), std::exchange(current_stream, next.id()));
  }
  bool queryStream(const Stream& stream) const override {
    DeviceRuntime& runtime = offload_runtime();
    const DeviceIndex index = stream.device_index();
    return runtime.is_done(index, runtime.record_event(index));
  }
  void synchronizeStream(const Stream& stream) const override {
    synchronizeDevice(stream.device_index());
  }
  void synchronizeDevice(DeviceIndex index) const override {
    DeviceRuntime& runtime = offload_runtime();
    runtime.wait_for(device(index).index(), runtime.record_event(device(index).index()));
  }

  struct Event {
    DeviceIndex device;
    uint64_t number;
  };
  void record(void** event, const Stream& stream, DeviceIndex, c10::EventFlag) const override {
    if (!*event) *event = new Event;
    *static_cast<Event*>(*event) = {stream.device_index(),
                                    offload_runtime().record_event(stream.device_index())};
  }
  void block(void*, const Stream&) const override {}
  bool queryEvent(void* event) const override {
    const auto* const known = static_cast<Event*>(event);
    return !known || offload_runtime().is_done(known->device, known->number);
  }
  void synchronizeEvent(void* event) const override {
    const auto* const known = static_cast<Event*>(event);
    if (known) offload_runtime().wait_for(known->device, known->number);
  }
  void destroyEvent(void* event, DeviceIndex) const noexcept override {
    delete static_cast<Event*>(event);
  }
};

// The CPU's kernels draw, hence the CPU's generators, and a seed gives the CPU's numbers.
struct RuntimeHooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const override { return offload_runtime().device_count(); }
  Device getDeviceFromPtr(void*) const override { return device(-1); }
  const at::Generator& getDefaultGenerator(DeviceIndex) const override {
    return at::detail::getDefaultCPUGenerator();
  }
  at::Generator getNewGenerator(DeviceIndex) const override {
    return at::make_generator<at::CPUGeneratorImpl>();
  }
  // Copies to the device are made by operators on the CPU, for which no memory is better than
  // other.
  bool isPinnedPtr(const void*) const override { return true; }
  c10::Allocator* getPinnedMemoryAllocator() const override { return c10::GetAllocator(c10::kCPU); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    MirroredStorage* const own = mirrored(storage);
    TORCH_CHECK(own, "cannot resize a storage on ", storage.device(), " that came from outside");
    own->resize(bytes);
  }
};

void register_with_pytorch(const std::string& name) {
  c10::register_privateuse1_backend(name);
  static RuntimeAllocator allocator;
  c10::SetAllocator(c10::kPrivateUse1, &allocator);
  c10::SetStorageImplCreate(c10::kPrivateUse1, &make_mirrored);
  static const RuntimeGuard guard;
  static const c10::impl::DeviceGuardImplRegistrar registrar(c10::kPrivateUse1, &guard);
  at::RegisterPrivateUse1HooksInterface(new RuntimeHooks);  // PyTorch keeps it for good
  register_host_operators();
}

}  // namespace

void register_runtime_device(DeviceRuntime& runtime) {
  static std::mutex registering;
  const std::lock_guard lock(registering);
  DeviceRuntime* const before = registered_runtime;
  if (before == &runtime) return;
  const std::string name = runtime.type_name();
  TORCH_CHECK(!before, "device '", name, "' cannot be made: this process has device '",
              before ? before->type_name() : "",
              "' already, and PyTorch one such device a process");
  TORCH_CHECK(!c10::impl::hasDeviceGuardImpl(c10::kPrivateUse1), "device '", name,
              "' cannot be made: another package has registered device '",
              c10::get_privateuse1_backend(), "', and PyTorch has one such device a process");
  TORCH_CHECK(runtime.device_count() > 0, "there is no device '", name, "' in this machine");
  register_with_pytorch(name);
  registered_runtime = &runtime;
}

DeviceRuntime& offload_runtime() {
  DeviceRuntime* const runtime = registered_runtime.load(std::memory_order_acquire);
  TORCH_CHECK(runtime, "no backend has brought a runtime for its device");
  return *runtime;
}

bool has_offload_runtime() {
  return registered_runtime.load(std::memory_order_acquire) != nullptr;
}

bool is_offloaded() {
  return has_offload_runtime() && execution_device().type == c10::kPrivateUse1;
}

OffloadMemory offload_memory() {
  return {allocated_bytes.load(std::memory_order_relaxed),
          peak_bytes.load(std::memory_order_relaxed)};
}

void reset_peak_offload_memory() {
  peak_bytes.store(allocated_bytes.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

}  // namespace torch_lazy
