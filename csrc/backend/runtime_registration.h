// The device of PyTorch that a DeviceRuntime is behind, under the key PrivateUse1: memory, streams,
// events, hooks, and the two factories, but no other operator. A vendor who has kernels for PyTorch
// registers it beside them; for one who has none the core does, with the CPU's (offload/).
//
// Nothing here needs the library torch_lazy, so a device works where that is not loaded.
//
// Streams are names: a device has one queue, so that none has to wait for another. Random numbers
// are those of the CPU's generators.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/DeviceType.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <utility>

#include "backend/device_runtime.h"
#include "base/api.h"

namespace torch_lazy {

class RuntimeGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  using Device = c10::Device;
  using DeviceIndex = c10::DeviceIndex;
  using Stream = c10::Stream;

  explicit RuntimeGuard(DeviceRuntime& runtime) : runtime_(runtime) {}

  // The device; for -1 the current one of this thread.
  static Device device(DeviceIndex index) {
    return Device(c10::kPrivateUse1, index < 0 ? current_index_ : index);
  }

  c10::DeviceType type() const override { return c10::kPrivateUse1; }
  DeviceIndex deviceCount() const noexcept override { return runtime_.device_count(); }
  Device getDevice() const override { return device(-1); }
  Device exchangeDevice(Device next) const override {
    TORCH_CHECK(next.index() < deviceCount(), "there is no device ", next, ": there are ",
                int(deviceCount()));
    return device(std::exchange(current_index_, device(next.index()).index()));
  }
  void setDevice(Device next) const override { exchangeDevice(next); }
  void uncheckedSetDevice(Device next) const noexcept override { current_index_ = next.index(); }

  Stream getStream(Device of) const override { return stream(of, current_stream_); }
  Stream getDefaultStream(Device of) const override { return stream(of, 0); }
  Stream getNewStream(Device of, int) const override {
    static std::atomic<c10::StreamId> streams = 0;
    return stream(of, ++streams);
  }
  Stream getStreamFromGlobalPool(Device of, bool) const override { return getNewStream(of, 0); }
  Stream exchangeStream(Stream next) const override {
    return stream(next.device(), std::exchange(current_stream_, next.id()));
  }
  bool queryStream(const Stream& stream) const override {
    const DeviceIndex index = stream.device_index();
    return runtime_.is_done(index, runtime_.record_event(index));
  }
  void synchronizeStream(const Stream& stream) const override {
    synchronizeDevice(stream.device_index());
  }
  void synchronizeDevice(DeviceIndex index) const override {
    const DeviceIndex known = device(index).index();
    runtime_.wait_for(known, runtime_.record_event(known));
  }

  void record(void** event, const Stream& stream, DeviceIndex, c10::EventFlag) const override {
    const uint64_t number = runtime_.record_event(stream.device_index());
    if (!*event) *event = new Event;
    *static_cast<Event*>(*event) = {stream.device_index(), number};
  }
  void block(void*, const Stream&) const override {}
  // Null is one that was not recorded.
  bool queryEvent(void* event) const override {
    const auto* const known = static_cast<Event*>(event);
    return !known || runtime_.is_done(known->device, known->number);
  }
  void synchronizeEvent(void* event) const override {
    const auto* const known = static_cast<Event*>(event);
    if (known) runtime_.wait_for(known->device, known->number);
  }
  void destroyEvent(void* event, DeviceIndex) const noexcept override {
    delete static_cast<Event*>(event);
  }

 private:
  struct Event {
    DeviceIndex device;
    uint64_t number;
  };

  static Stream stream(Device of, c10::StreamId id) {
    return Stream(Stream::UNSAFE, device(of.index()), id);
  }

  DeviceRuntime& runtime_;
  static inline thread_local DeviceIndex current_index_ = 0;
  // Of all devices. Nothing to destroy: a thread runs its last window while it ends.
  static inline thread_local c10::StreamId current_stream_ = 0;
};

class TORCH_LAZY_API RuntimeHooks : public at::PrivateUse1HooksInterface {
 public:
  explicit RuntimeHooks(DeviceRuntime& runtime) : runtime_(runtime) {}

  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return runtime_.device_count(); }
  c10::Device getDeviceFromPtr(void*) const override { return RuntimeGuard::device(-1); }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    return at::detail::getDefaultCPUGenerator();
  }
  at::Generator getNewGenerator(c10::DeviceIndex) const override {
    return at::make_generator<at::CPUGeneratorImpl>();
  }
  // A runtime takes all memory of the host alike.
  bool isPinnedPtr(const void*) const override { return true; }
  c10::Allocator* getPinnedMemoryAllocator() const override { return c10::GetAllocator(c10::kCPU); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    const c10::DeviceGuard guard(storage.device());
    c10::DataPtr memory = storage.allocator()->allocate(bytes);
    const size_t kept = std::min(bytes, storage.nbytes());
    if (kept > 0) runtime_.copy(storage.device().index(), memory.get(), storage.data(), kept);
    storage.set_data_ptr_noswap(std::move(memory));
    storage.set_nbytes(bytes);
  }

 private:
  DeviceRuntime& runtime_;
};

// Raises where the runtime returns nothing, as malloc() does.
inline void* allocated_by(DeviceRuntime& runtime, c10::Device device, size_t bytes) {
  void* const address = runtime.allocate(device.index(), bytes);
  if (address == nullptr)
    throw c10::OutOfMemoryError({__func__, __FILE__, uint32_t(__LINE__)},
                                c10::str("device ", device, " has no ", bytes, " bytes left"));
  return address;
}

class RuntimeAllocator final : public c10::Allocator {
 public:
  // Of the runtime that register_runtime() has registered.
  static RuntimeAllocator& of(DeviceRuntime& runtime) {
    runtime_ = &runtime;
    static auto& allocator = *new RuntimeAllocator;
    return allocator;
  }

  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device here = RuntimeGuard::device(-1);
    if (bytes == 0) return {nullptr, here};
    void* const address = allocated_by(*runtime_, here, bytes);
    return {address, address, &free, here};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    if (bytes > 0) runtime_->copy(RuntimeGuard::device(-1).index(), to, from, bytes);
  }

 private:
  static void free(void* address) { runtime_->free(address); }

  static inline DeviceRuntime* runtime_ = nullptr;  // a process has one
};

// aten::empty.memory_format
inline at::Tensor runtime_empty(c10::IntArrayRef sizes, std::optional<c10::ScalarType> dtype,
                                std::optional<c10::Layout>, std::optional<c10::Device> device,
                                std::optional<bool>, std::optional<c10::MemoryFormat> format) {
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_generic(sizes, c10::GetAllocator(c10::kPrivateUse1),
                                   c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   c10::dtype_or_default(dtype), format);
}

// aten::empty_strided
inline at::Tensor runtime_empty_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                                        std::optional<c10::ScalarType> dtype,
                                        std::optional<c10::Layout>,
                                        std::optional<c10::Device> device, std::optional<bool>) {
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_strided_generic(sizes, strides, c10::GetAllocator(c10::kPrivateUse1),
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           c10::dtype_or_default(dtype));
}

// Of torch.device("abacus"), which none of PyTorch's own is called.
inline void check_type_name(const std::string& name) {
  const auto is_fine = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  bool is_known = false;
  try {
    is_known = c10::Device(name).type() != c10::kPrivateUse1;
  } catch (const c10::Error&) {
  }
  TORCH_CHECK(!name.empty() && std::all_of(name.begin(), name.end(), is_fine) && !is_known,
              "DeviceRuntime::type_name() returns '", name, "': expected a name of lower case ",
              "letters and '_' that is no device type of PyTorch's");
}

// Raises where somebody else has the key, which PyTorch has one of, the name is none, or there is
// no device.
inline void check_registrable(DeviceRuntime& runtime) {
  const std::string name = runtime.type_name();
  check_type_name(name);
  TORCH_CHECK(!c10::impl::hasDeviceGuardImpl(c10::kPrivateUse1), "device '", name,
              "' cannot be made: another package has registered device '",
              c10::get_privateuse1_backend(), "', and PyTorch has one such device a process");
  TORCH_CHECK(runtime.device_count() > 0, "there is no device '", name, "' in this machine");
}

// Registers the device with PyTorch under the runtime's name, without factories; raises as
// check_registrable() does. What it is given lives as long as the process.
inline void register_runtime(DeviceRuntime& runtime, c10::Allocator& allocator,
                             RuntimeHooks& hooks) {
  check_registrable(runtime);
  c10::register_privateuse1_backend(runtime.type_name());
  c10::SetAllocator(c10::kPrivateUse1, &allocator);
  static const RuntimeGuard guard(runtime);
  static const c10::impl::DeviceGuardImplRegistrar registrar(c10::kPrivateUse1, &guard);
  at::RegisterPrivateUse1HooksInterface(&hooks);
}

// The same with memory as the runtime allocates it, and factories.
inline void register_runtime(DeviceRuntime& runtime) {
  check_registrable(runtime);  // before the runtime becomes the allocator's
  register_runtime(runtime, RuntimeAllocator::of(runtime), *new RuntimeHooks(runtime));
  auto& aten = *new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1,
                                   __FILE__, __LINE__);
  aten.impl("empty.memory_format", &runtime_empty);
  aten.impl("empty_strided", &runtime_empty_strided);
}

}  // namespace torch_lazy
