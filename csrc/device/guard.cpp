// The device guard of `lazy`: devices, streams and events of the execution device by another name.
// The CPU has none of them. There all work is in program order, so streams are only names that a
// thread can have as its current one, and an operation on one never waits for another's.
#include "device/guard.h"

#include "base/without_gil.h"
// After Python.h.
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <atomic>
#include <chrono>

#include "backend/execution_device.h"
#include "backend/late_failure.h"
#include "device/lazy_storage.h"
#include "device/lazy_tensor.h"
#include "device/register.h"

namespace torch_lazy {
namespace {

using Clock = std::chrono::steady_clock;

// PyTorch calls some functions of a guard with the GIL, which a window of another thread may need
// before it ends.
void run_all() {
  const WithoutGil without_gil;
  Recorder::synchronize_all();
}

// What is pending on the stream; other threads may be recording for others meanwhile.
void run_on(c10::Stream inner) {
  const WithoutGil without_gil;
  Recorder::synchronize_streams(inner);
}

// The guard of the device behind, where that has streams and events of its own. The device is not
// chosen for this: PyTorch asks every guard, whoever uses its device. What makes a stream or an
// event chooses it.
const c10::impl::DeviceGuardImplInterface* inner_guard() {
  const ExecutionDevice* const chosen = chosen_execution_device();
  return chosen ? chosen->guard : nullptr;
}

c10::DeviceIndex count_if_chosen() {
  const ExecutionDevice* const chosen = chosen_execution_device();
  return chosen ? chosen->count : c10::DeviceIndex(1);
}

c10::DeviceIndex current_if_chosen() {
  const ExecutionDevice* const chosen = chosen_execution_device();
  return chosen ? chosen->current() : c10::DeviceIndex(0);
}

c10::Stream inner(c10::Stream stream) {
  return c10::Stream(c10::Stream::UNSAFE, inner_device(stream.device()), stream.id());
}
c10::Stream lazy(c10::Stream stream) {
  return c10::Stream(c10::Stream::UNSAFE, lazy_device(stream.device_index()), stream.id());
}
c10::Stream named_stream(c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, lazy_device(current_if_chosen()), id);
}

class LazyGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::DeviceType::Lazy; }
  c10::Device exchangeDevice(c10::Device device) const override {
    check(device);
    const auto* const guard = inner_guard();
    return lazy_device(guard ? guard->exchangeDevice(inner_device(device)).index()
                             : current_if_chosen());
  }
  c10::Device getDevice() const override { return lazy_device(current_if_chosen()); }
  void setDevice(c10::Device device) const override {
    check(device);
    if (const auto* const guard = inner_guard()) guard->setDevice(inner_device(device));
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (const auto* const guard = inner_guard())
      guard->uncheckedSetDevice(c10::Device(guard->type(), device.index()));
  }
  c10::DeviceIndex deviceCount() const noexcept override { return count_if_chosen(); }

  c10::Stream getStream(c10::Device device) const override {
    const auto* const guard = inner_guard();
    return guard ? lazy(guard->getStream(inner_device(device))) : named_stream(current_stream_);
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    const auto* const guard = inner_guard();
    return guard ? lazy(guard->getDefaultStream(inner_device(device))) : named_stream(0);
  }
  c10::Stream getNewStream(c10::Device device, int priority) const override {
    if (const auto* const guard = execution_device().guard)
      return lazy(guard->getNewStream(inner_device(device), priority));
    static std::atomic<c10::StreamId> last{0};
    return named_stream(++last);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool high_priority) const override {
    if (const auto* const guard = execution_device().guard)
      return lazy(guard->getStreamFromGlobalPool(inner_device(device), high_priority));
    return getNewStream(device, 0);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    if (const auto* const guard = execution_device().guard)
      return lazy(guard->exchangeStream(inner(stream)));
    return named_stream(std::exchange(current_stream_, stream.id()));
  }
  void* getStreamNativeHandle(const c10::Stream stream) const override {
    const auto* const guard = inner_guard();
    return guard ? guard->getStreamNativeHandle(inner(stream)) : nullptr;
  }
  // What was asked of a stream has been submitted by the time that the answer is given, so that a
  // loop that waits for it ends.
  bool queryStream(const c10::Stream& stream) const override {
    const auto* const guard = inner_guard();
    if (!guard) {
      run_all();
      return true;
    }
    run_on(inner(stream));
    return guard->queryStream(inner(stream));
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    if (const auto* const guard = inner_guard()) {
      run_on(inner(stream));
      guard->synchronizeStream(inner(stream));
    } else {
      run_all();
    }
    raise_found_failures();
  }
  void synchronizeDevice(const c10::DeviceIndex device) const override {
    run_all();
    if (const auto* const guard = inner_guard()) guard->synchronizeDevice(device);
    raise_found_failures();
  }

  // On the CPU an event that takes the time runs all pending work first, or the time would be that
  // of recording operations; one without is program order alone, and records nothing. Of a device
  // with streams every event follows what was submitted, so that others can wait for it.
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex device,
              const c10::EventFlag flag) const override {
    if (const auto* const guard = execution_device().guard) {
      run_on(inner(stream));
      return guard->record(event, inner(stream), device, flag);
    }
    if (flag != c10::EventFlag::BACKEND_DEFAULT) return;
    run_all();
    if (!*event) *event = new Clock::time_point;
    *static_cast<Clock::time_point*>(*event) = Clock::now();
  }
  void block(void* event, const c10::Stream& stream) const override {
    const auto* const guard = inner_guard();
    if (!guard) return;
    run_on(inner(stream));
    guard->block(event, inner(stream));
  }
  bool queryEvent(void* event) const override {
    if (!event) run_all();
    const auto* const guard = inner_guard();
    return !guard || guard->queryEvent(event);
  }
  void synchronizeEvent(void* event) const override {
    if (!event) run_all();
    if (const auto* const guard = inner_guard()) guard->synchronizeEvent(event);
    raise_found_failures();
  }
  void destroyEvent(void* event, const c10::DeviceIndex device) const noexcept override {
    if (const auto* const guard = inner_guard()) return guard->destroyEvent(event, device);
    delete static_cast<Clock::time_point*>(event);
  }
  double elapsedTime(void* start, void* end, const c10::DeviceIndex device) const override {
    if (const auto* const guard = inner_guard()) return guard->elapsedTime(start, end, device);
    const auto elapsed =
        *static_cast<Clock::time_point*>(end) - *static_cast<Clock::time_point*>(start);
    return std::chrono::duration<double, std::milli>(elapsed).count();
  }

 private:
  static void check(c10::Device device) { check_lazy_index(device, count_if_chosen()); }

  inline static thread_local c10::StreamId current_stream_ = 0;
};

// On the CPU memory is free as soon as its last tensor is, and by then all that reads it has run.
void record_stream(at::Tensor& self, c10::Stream stream) {
  LazyTensorImpl* const impl = lazy_impl(self);
  const auto* const guard = inner_guard();
  if (impl && guard)
    guard->recordDataPtrOnStream(impl->inner().storage().data_ptr(), inner(stream));
}

}  // namespace

void register_streams(torch::Library& library) {
  library.impl("record_stream", record_stream);
}

void submit_to_device() {
  if (inner_guard()) run_all();
}

void submit_to_stream(std::optional<std::pair<c10::DeviceIndex, c10::StreamId>> place) {
  const auto* const guard = inner_guard();
  if (!guard) return;
  const c10::Device device = place ? c10::Device(guard->type(), place->first) : guard->getDevice();
  run_on(place ? c10::Stream(c10::Stream::UNSAFE, device, place->second)
               : guard->getStream(device));
}

void raise_failures_of_device() {
  if (inner_guard()) raise_found_failures();
}

void register_guard() {
  // Never destroyed: tensors may outlive static destructors.
  static const c10::impl::DeviceGuardImplRegistrar registrar(c10::DeviceType::Lazy, new LazyGuard);
}

}  // namespace torch_lazy
