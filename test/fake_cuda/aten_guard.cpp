// PyTorch's guard of type CUDA: the current device and stream of a thread, streams and events, all
// of them the driver's. The id of a stream is its handle; 0 is the legacy default stream.

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <array>
#include <atomic>
#include <utility>

#include "fake_cuda/aten_driver.h"

namespace torch_lazy::fake_cuda {
namespace {

using c10::Device, c10::DeviceIndex, c10::Stream, c10::StreamId;

// As many as PyTorch has of a priority; who asks for more gets them in turn again.
constexpr size_t kPooledStreams = 32;

thread_local StreamId current_id = 0;

Stream stream_of(Device device, StreamId id) {
  return Stream(Stream::UNSAFE, checked_device(device.index()), id);
}

StreamId create_stream() {
  ensure_context();
  CUstream stream = nullptr;
  check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  return reinterpret_cast<StreamId>(stream);
}

// False for "not ready".
bool is_done(CUresult queried) {
  if (queried == CUDA_ERROR_NOT_READY) return false;
  check(queried);
  return true;
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::kCUDA; }
  DeviceIndex deviceCount() const noexcept override { return 1; }
  Device getDevice() const override { return checked_device(0); }
  Device exchangeDevice(Device next) const override { return checked_device(next.index()); }
  void setDevice(Device next) const override { checked_device(next.index()); }
  void uncheckedSetDevice(Device) const noexcept override {}

  Stream getStream(Device device) const override { return stream_of(device, current_id); }
  Stream getDefaultStream(Device device) const override { return stream_of(device, 0); }
  Stream getNewStream(Device device, int) const override {
    return stream_of(device, create_stream());
  }
  Stream getStreamFromGlobalPool(Device device, bool) const override {
    static const std::array<StreamId, kPooledStreams> pool = [] {
      std::array<StreamId, kPooledStreams> made{};
      for (StreamId& id : made) id = create_stream();
      return made;
    }();
    static std::atomic<size_t> given = 0;
    return stream_of(device, pool[given++ % kPooledStreams]);
  }
  Stream exchangeStream(Stream next) const override {
    return stream_of(next.device(), std::exchange(current_id, next.id()));
  }
  void* getStreamNativeHandle(const Stream stream) const override { return handle_of(stream); }

  bool queryStream(const Stream& stream) const override {
    ensure_context();
    return is_done(cuStreamQuery(handle_of(stream)));
  }
  void synchronizeStream(const Stream& stream) const override {
    ensure_context();
    check(cuStreamSynchronize(handle_of(stream)));
  }
  void synchronizeDevice(DeviceIndex) const override {
    ensure_context();
    check(cuCtxSynchronize());
  }

  void record(void** event, const Stream& stream, DeviceIndex, c10::EventFlag) const override {
    ensure_context();
    if (*event == nullptr) check(cuEventCreate(reinterpret_cast<CUevent*>(event), 0));
    check(cuEventRecord(static_cast<CUevent>(*event), handle_of(stream)));
  }
  void block(void* event, const Stream& stream) const override {
    if (event == nullptr) return;  // never recorded
    ensure_context();
    check(cuStreamWaitEvent(handle_of(stream), static_cast<CUevent>(event), 0));
  }
  bool queryEvent(void* event) const override {
    if (event == nullptr) return true;
    ensure_context();
    return is_done(cuEventQuery(static_cast<CUevent>(event)));
  }
  void synchronizeEvent(void* event) const override {
    if (event == nullptr) return;
    ensure_context();
    check(cuEventSynchronize(static_cast<CUevent>(event)));
  }
  double elapsedTime(void* start, void* end, DeviceIndex) const override {
    ensure_context();
    float milliseconds = 0;
    check(
        cuEventElapsedTime(&milliseconds, static_cast<CUevent>(start), static_cast<CUevent>(end)));
    return milliseconds;
  }
  void destroyEvent(void* event, DeviceIndex) const noexcept override {
    if (event != nullptr) cuEventDestroy_v2(static_cast<CUevent>(event));
  }

  void recordDataPtrOnStream(const c10::DataPtr& memory, const Stream& stream) const override {
    c10::getDeviceAllocator(c10::kCUDA)->recordStream(memory, stream);
  }
};

C10_REGISTER_GUARD_IMPL(CUDA, Guard);

// What PyTorch has compiled for CUDA asks the driver itself, whatever guard is registered. For
// Python, as torch.ops.fake_cuda.
Stream by_id(StreamId id) {
  return stream_of(checked_device(0), id);
}

void* by_handle(int64_t event) {
  return reinterpret_cast<void*>(event);
}

TORCH_LIBRARY_FRAGMENT(fake_cuda, library) {
  static const Guard guard;
  library.def("synchronize() -> ()", [] { guard.synchronizeDevice(0); });
  library.def("query_stream(int stream) -> bool",
              [](int64_t stream) { return guard.queryStream(by_id(stream)); });
  library.def("synchronize_stream(int stream) -> ()",
              [](int64_t stream) { guard.synchronizeStream(by_id(stream)); });
  library.def("record_event(int event, int stream) -> int", [](int64_t event, int64_t stream) {
    void* handle = by_handle(event);
    guard.record(&handle, by_id(stream), 0, c10::EventFlag::BACKEND_DEFAULT);
    return reinterpret_cast<int64_t>(handle);
  });
  library.def("wait_event(int event, int stream) -> ()",
              [](int64_t event, int64_t stream) { guard.block(by_handle(event), by_id(stream)); });
  library.def("query_event(int event) -> bool",
              [](int64_t event) { return guard.queryEvent(by_handle(event)); });
  library.def("synchronize_event(int event) -> ()",
              [](int64_t event) { guard.synchronizeEvent(by_handle(event)); });
  library.def("elapsed_time(int start, int end) -> float", [](int64_t start, int64_t end) {
    return guard.elapsedTime(by_handle(start), by_handle(end), 0);
  });
  library.def("destroy_event(int event) -> ()",
              [](int64_t event) { guard.destroyEvent(by_handle(event), 0); });
}

}  // namespace

CUstream current_stream() {
  return reinterpret_cast<CUstream>(current_id);
}

}  // namespace torch_lazy::fake_cuda
