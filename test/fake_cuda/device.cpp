#include "fake_cuda/device.h"

#include <fmt/format.h>

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <new>
#include <stdexcept>

namespace torch_lazy::fake_cuda {
namespace {

std::recursive_mutex& mutex() {
  static auto* const made = new std::recursive_mutex;
  return *made;
}

std::atomic<pid_t> initialized_by = 0;  // written under the mutex

CUresult result_of(simt::Defect defect) {
  switch (defect) {
    case simt::Defect::kOutOfBounds:
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    case simt::Defect::kUnaligned:
      return CUDA_ERROR_MISALIGNED_ADDRESS;
    default:
      return CUDA_ERROR_LAUNCH_FAILED;
  }
}

CUresult complain(const char* what, CUresult result) {
  std::fprintf(stderr, "fake CUDA driver: %s\n", what);
  return result;
}

}  // namespace

// Never destroyed: a process may call the driver while it ends.
Device& Device::get() {
  static auto* const device = new Device;
  return *device;
}

CUstream_st& Device::stream(CUstream handle) {
  if (handle == nullptr || handle == reinterpret_cast<CUstream>(1)) return legacy_;
  if (!streams_.contains(handle)) {
    throw std::invalid_argument(
        fmt::format("{} is no stream; the per-thread default stream (2) "
                    "is not there",
                    static_cast<void*>(handle)));
  }
  return *handle;
}

CUstream Device::create_stream(bool blocking) {
  auto* const made = new CUstream_st{.blocking = blocking};
  streams_.insert(made);
  return made;
}

void Device::destroy_stream(CUstream handle) {
  CUstream_st& old = stream(handle);
  wait_for(old, old.enqueued);
  streams_.erase(handle);
  old.queue.clear();
  // Events may still name it: what they wait for is done.
}

void Device::enqueue(CUstream_st& to, std::function<void()> work) {
  // The legacy stream waits for all blocking streams, and they for it.
  const auto order_behind = [&](CUstream_st& earlier) {
    if (earlier.done == earlier.enqueued) return;
    ++to.enqueued;
    to.queue.push_back(
        [this, &earlier, position = earlier.enqueued] { wait_for(earlier, position); });
  };
  if (&to == &legacy_) {
    for (CUstream_st* other : streams_) {
      if (other->blocking) order_behind(*other);
    }
  } else if (to.blocking) {
    order_behind(legacy_);
  }
  ++to.enqueued;
  to.queue.push_back(std::move(work));
}

void Device::wait_for(CUstream_st& of, uint64_t position) {
  while (of.done < position && !of.queue.empty()) {
    const std::function<void()> work = std::move(of.queue.front());
    of.queue.pop_front();
    ++of.done;
    // After a fault nothing runs any more.
    if (error == CUDA_SUCCESS) work();
  }
}

void Device::wait_for_all() {
  wait_for(legacy_, legacy_.enqueued);
  for (CUstream_st* each : streams_) wait_for(*each, each->enqueued);
}

bool Device::is_pinned(const void* address, size_t bytes) const {
  const char* const at = static_cast<const char*>(address);
  auto next = pinned_bytes.upper_bound(at);
  if (next == pinned_bytes.begin()) return false;
  const auto& [begin, size] = *std::prev(next);
  return at + bytes <= begin + size;
}

void Device::take(const std::string& kernel, const simt::Report& report) {
  if (report.findings.empty()) return;
  const std::string text = "kernel " + kernel + "\n" + report.text();
  findings += text;
  error = result_of(report.findings.front().defect);
  complain(text.c_str(), error);
}

CUresult enter(Needs needs, const std::function<void()>& body) {
  // Before the lock, which a thread of the parent may have held when it forked.
  if (needs != Needs::kNothing && initialized_by != getpid()) return CUDA_ERROR_NOT_INITIALIZED;
  const std::lock_guard<std::recursive_mutex> lock(mutex());
  if (needs == Needs::kContext) {
    if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (Device::get().error != CUDA_SUCCESS) return Device::get().error;
  }
  try {
    body();
  } catch (const Failure& failure) {
    return failure.result;
  } catch (const std::bad_alloc& error) {
    return complain(error.what(), CUDA_ERROR_OUT_OF_MEMORY);
  } catch (const std::invalid_argument& error) {
    return complain(error.what(), CUDA_ERROR_INVALID_VALUE);
  } catch (const std::exception& error) {
    return complain(error.what(), CUDA_ERROR_INVALID_IMAGE);
  }
  return needs == Needs::kContext ? Device::get().error : CUDA_SUCCESS;
}

CUcontext& current_context() {
  thread_local CUcontext current = nullptr;
  return current;
}

CUstreamCaptureMode& capture_mode() {
  thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

void forbid_while_capturing() {
  Device& device = Device::get();
  if (!device.capturing || capture_mode() != CU_STREAM_CAPTURE_MODE_GLOBAL) return;
  device.capture_spoiled = true;
  throw Failure{CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED};
}

// In a forked child of a process that had the driver already it stays without.
void note_initialized() {
  if (initialized_by == 0) initialized_by = getpid();
  if (initialized_by != getpid()) throw Failure{CUDA_ERROR_NOT_INITIALIZED};
}

}  // namespace torch_lazy::fake_cuda
