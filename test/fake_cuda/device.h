// The fake device: its memory, its streams, and the error that it has met. One a process; every
// entry point of the driver holds its mutex.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "fake_cuda/cuda_api.h"
#include "simt/memory.h"
#include "simt/report.h"

// Work that is done when someone waits for it, not before: who reads a result without waiting reads
// what was there.
struct CUstream_st {
  bool blocking = true;  // takes part in the order of the legacy default stream
  std::deque<std::function<void()>> queue;
  uint64_t enqueued = 0, done = 0;
};

// The end of what a stream held when the event was recorded.
struct CUevent_st {
  using Clock = std::chrono::steady_clock;

  CUstream_st* stream = nullptr;  // null: never recorded
  uint64_t position = 0;
  std::shared_ptr<std::optional<Clock::time_point>> passed = {};  // when the stream came to it
};

namespace torch_lazy::fake_cuda {

// Of a block whose kernel has asked for it, as an H100 has.
constexpr int kMostSharedBytes = 227 << 10;

class Device {
 public:
  static Device& get();

  simt::DeviceMemory memory;
  std::map<const char*, std::unique_ptr<char[]>> pinned;  // by address; null: the device's
  std::map<const char*, size_t> pinned_bytes;
  CUresult error = CUDA_SUCCESS;  // sticky, as after a fault on a device
  std::string findings;           // what the emulator has reported
  // How many succeed before one fails, on purpose; negative: all do.
  int64_t allocations_before_failure = -1;
  int64_t launches_before_failure = -1;
  int64_t graphs_before_failure = -1;
  bool capturing = false;        // a graph, on some other thread, in mode global
  bool capture_spoiled = false;  // by a call that is forbidden meanwhile
  // For tests.
  int64_t graph_launches = 0;
  int64_t launches_short_of_shared_memory = 0;  // of kernels that did not ask for their share

  // Null stands for the legacy default stream. Raises std::invalid_argument for none of ours.
  CUstream_st& stream(CUstream handle);
  CUstream create_stream(bool blocking);
  void destroy_stream(CUstream handle);

  void enqueue(CUstream_st& stream, std::function<void()> work);
  // Does the stream's work up to a position.
  void wait_for(CUstream_st& stream, uint64_t position);
  void wait_for_all();

  bool is_pinned(const void* address, size_t bytes) const;
  // Keeps the text, prints it, and makes the error sticky.
  void take(const std::string& kernel, const simt::Report& report);

 private:
  CUstream_st legacy_;
  std::set<CUstream> streams_;
};

// Raised by entry points to return another error than the usual.
struct Failure {
  CUresult result;
};

// Counts an allocation, a launch or a graph that is instantiated, and raises where it is the one
// that is to fail.
inline void fail_if_due(int64_t& before_failure, CUresult result) {
  if (before_failure >= 0 && before_failure-- == 0) throw Failure{result};
}

// Of a call that could be part of a graph by mistake: raises, and spoils the capture, where one is
// under way and the thread has not said that it knows.
void forbid_while_capturing();

// Runs an entry point's `body` under the mutex; what it raises becomes a CUresult, with its text on
// stderr. Needs cuInit() in this process (a forked child has none) and, unless told otherwise, a
// current context.
enum class Needs { kNothing, kInit, kContext };
CUresult enter(Needs needs, const std::function<void()>& body);

// By the calling thread.
CUcontext& current_context();
CUstreamCaptureMode& capture_mode();
void note_initialized();

}  // namespace torch_lazy::fake_cuda
