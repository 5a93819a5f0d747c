// Streams and events.

#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "fake_cuda/device.h"

using torch_lazy::fake_cuda::Device;
using torch_lazy::fake_cuda::enter;
using torch_lazy::fake_cuda::Failure;
using torch_lazy::fake_cuda::Needs;

namespace {

std::set<CUevent>& events() {
  static auto* const made = new std::set<CUevent>;
  return *made;
}

CUevent_st& checked(CUevent event) {
  if (!events().contains(event)) throw Failure{CUDA_ERROR_INVALID_HANDLE};
  return *event;
}

// Who asks again and again sees the work done at last, but never at once.
void query(CUstream_st& stream, uint64_t position) {
  if (stream.done >= position) return;
  Device::get().wait_for(stream, stream.done + 1);
  throw Failure{CUDA_ERROR_NOT_READY};
}

}  // namespace

FAKE_CUDA_EXPORT CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return enter(Needs::kContext, [&] {
    *stream = Device::get().create_stream((flags & CU_STREAM_NON_BLOCKING) == 0);
  });
}

FAKE_CUDA_EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return enter(Needs::kInit, [&] { std::swap(*mode, torch_lazy::fake_cuda::capture_mode()); });
}

FAKE_CUDA_EXPORT CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int) {
  return cuStreamCreate(stream, flags);
}

FAKE_CUDA_EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
  return enter(Needs::kContext, [&] { Device::get().destroy_stream(stream); });
}

FAKE_CUDA_EXPORT CUresult cuStreamSynchronize(CUstream handle) {
  return enter(Needs::kContext, [&] {
    CUstream_st& stream = Device::get().stream(handle);
    // The legacy stream's end is behind what the blocking streams hold.
    Device::get().enqueue(stream, [] {});
    Device::get().wait_for(stream, stream.enqueued);
  });
}

FAKE_CUDA_EXPORT CUresult cuStreamQuery(CUstream handle) {
  return enter(Needs::kContext, [&] {
    CUstream_st& stream = Device::get().stream(handle);
    query(stream, stream.enqueued);
  });
}

FAKE_CUDA_EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent handle, unsigned) {
  return enter(Needs::kContext, [&] {
    // The event as it is now: it may be recorded anew before the stream comes to this.
    const CUevent_st event = checked(handle);
    if (event.stream == nullptr) return;
    Device::get().enqueue(Device::get().stream(stream),
                          [event] { Device::get().wait_for(*event.stream, event.position); });
  });
}

FAKE_CUDA_EXPORT CUresult cuLaunchHostFunc(CUstream stream, void (*function)(void*), void* data) {
  return enter(Needs::kContext, [&] {
    Device::get().enqueue(Device::get().stream(stream), [=] { function(data); });
  });
}

FAKE_CUDA_EXPORT CUresult cuEventCreate(CUevent* event, unsigned) {
  return enter(Needs::kContext, [&] {
    *event = new CUevent_st;
    events().insert(*event);
  });
}

FAKE_CUDA_EXPORT CUresult cuEventDestroy_v2(CUevent event) {
  return enter(Needs::kContext, [&] {
    checked(event);
    events().erase(event);
    delete event;
  });
}

FAKE_CUDA_EXPORT CUresult cuEventRecord(CUevent event, CUstream handle) {
  return enter(Needs::kContext, [&] {
    CUstream_st& stream = Device::get().stream(handle);
    auto passed = std::make_shared<std::optional<CUevent_st::Clock::time_point>>();
    Device::get().enqueue(stream, [passed] { *passed = CUevent_st::Clock::now(); });
    checked(event) = {&stream, stream.enqueued, std::move(passed)};
  });
}

FAKE_CUDA_EXPORT CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return enter(Needs::kContext, [&] {
    const CUevent_st &first = checked(start), &last = checked(end);
    if (!first.passed || !last.passed) throw Failure{CUDA_ERROR_INVALID_HANDLE};
    if (!*first.passed || !*last.passed) throw Failure{CUDA_ERROR_NOT_READY};
    *milliseconds =
        std::chrono::duration<float, std::milli>(**last.passed - **first.passed).count();
  });
}

FAKE_CUDA_EXPORT CUresult cuEventQuery(CUevent handle) {
  return enter(Needs::kContext, [&] {
    const CUevent_st& event = checked(handle);
    if (event.stream != nullptr) query(*event.stream, event.position);
  });
}

FAKE_CUDA_EXPORT CUresult cuEventSynchronize(CUevent handle) {
  return enter(Needs::kContext, [&] {
    const CUevent_st& event = checked(handle);
    if (event.stream != nullptr) Device::get().wait_for(*event.stream, event.position);
  });
}
