// The device guard of `lazy`: one device, whose streams and events are those of PyTorch. All work
// is in program order, so streams are only names that a thread can have as its current one, and an
// operation on one never waits for another's.
#include <Python.h>
// After Python.h.
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <atomic>
#include <chrono>

#include "device/lazy_storage.h"
#include "device/register.h"

namespace torch_lazy {
namespace {

using Clock = std::chrono::steady_clock;

// PyTorch calls some functions of a guard with the GIL, which a window of another thread may need
// before it ends.
class WithoutGil {
 public:
  WithoutGil() : state_(Py_IsInitialized() && PyGILState_Check() ? PyEval_SaveThread() : nullptr) {}
  ~WithoutGil() {
    if (state_) PyEval_RestoreThread(state_);
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* const state_;
};

void synchronize() {
  const WithoutGil without_gil;
  Recorder::synchronize_all();
}

c10::Stream named_stream(c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, kLazyDevice, id);
}

class LazyGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::DeviceType::Lazy; }
  c10::Device exchangeDevice(c10::Device device) const override {
    check(device);
    return kLazyDevice;
  }
  c10::Device getDevice() const override { return kLazyDevice; }
  void setDevice(c10::Device device) const override { check(device); }
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }

  c10::Stream getStream(c10::Device) const override { return named_stream(current_stream_); }
  c10::Stream getDefaultStream(c10::Device) const override { return named_stream(0); }
  c10::Stream getNewStream(c10::Device, int) const override {
    static std::atomic<c10::StreamId> last{0};
    return named_stream(++last);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return getNewStream(device, 0);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return named_stream(std::exchange(current_stream_, stream.id()));
  }
  void* getStreamNativeHandle(const c10::Stream) const override { return nullptr; }
  // What was asked of a stream has run by the time that the answer is given, so that a loop that
  // waits for it ends.
  bool queryStream(const c10::Stream&) const override {
    synchronize();
    return true;
  }
  void synchronizeStream(const c10::Stream&) const override { synchronize(); }
  void synchronizeDevice(const c10::DeviceIndex) const override { synchronize(); }

  // An event that takes the time runs all pending work first, or the time would be that of
  // recording operations. One without is program order alone, and records nothing.
  void record(void** event, const c10::Stream&, const c10::DeviceIndex,
              const c10::EventFlag flag) const override {
    if (flag != c10::EventFlag::BACKEND_DEFAULT) return;
    synchronize();
    if (!*event) *event = new Clock::time_point;
    *static_cast<Clock::time_point*>(*event) = Clock::now();
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void* event) const override {
    if (!event) synchronize();
    return true;
  }
  void synchronizeEvent(void* event) const override {
    if (!event) synchronize();
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<Clock::time_point*>(event);
  }
  double elapsedTime(void* start, void* end, const c10::DeviceIndex) const override {
    const auto elapsed =
        *static_cast<Clock::time_point*>(end) - *static_cast<Clock::time_point*>(start);
    return std::chrono::duration<double, std::milli>(elapsed).count();
  }

 private:
  static void check(c10::Device device) {
    TORCH_CHECK(device.index() <= 0, "there is no device ", device,
                ": device lazy has 1 device, lazy:0");
  }

  inline static thread_local c10::StreamId current_stream_ = 0;
};

// Memory is free as soon as its last tensor is, and by then all that reads it has run.
void record_stream(at::Tensor&, c10::Stream) {}

}  // namespace

void register_streams(torch::Library& library) {
  library.impl("record_stream", record_stream);
}

void register_guard() {
  // Never destroyed: tensors may outlive static destructors.
  static const c10::impl::DeviceGuardImplRegistrar registrar(c10::DeviceType::Lazy, new LazyGuard);
}

}  // namespace torch_lazy
