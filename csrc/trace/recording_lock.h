// The lock around the bookkeeping of one operation: two atomic instructions when no thread waits.
//
// It is taken several times an operation, nearly always by the one thread that records, and
// std::mutex costs three times as much there. Waiting threads sleep in the kernel
// (std::atomic::wait).
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace torch_lazy {

class RecordingLock {
 public:
  void lock() noexcept {
    uint32_t expected = kFree;
    if (state_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire)) return;
    // kContended tells the holder to wake a waiter; whoever waited must assume that others do too.
    while (state_.exchange(kContended, std::memory_order_acquire) != kFree)
      state_.wait(kContended, std::memory_order_relaxed);
  }
  void unlock() noexcept {
    if (state_.exchange(kFree, std::memory_order_release) == kContended) state_.notify_one();
  }

 private:
  enum : uint32_t { kFree, kHeld, kContended };
  std::atomic<uint32_t> state_{kFree};
};

using RecordingGuard = std::unique_lock<RecordingLock>;

// The one lock of all recorders. It guards every window, every StorageState::recorder and the
// tables of owners. It is held for the bookkeeping of an operation only: never while kernels run,
// never while something can take Python's GIL.
inline RecordingLock& recording_lock() {
  static constinit RecordingLock instance;
  return instance;
}

}  // namespace torch_lazy
