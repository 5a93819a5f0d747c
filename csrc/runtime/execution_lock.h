// The lock of one executable.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/fork.h"

namespace torch_lazy {

// Held while an executable runs that is not concurrent. A run may take long, so a fork does not
// wait for its end: a child takes the lock over from a thread that only its parent has. What such a
// run left is in no executable, since those keep nothing of a run.
class ExecutionLock {
 public:
  void lock() noexcept {
    const uint32_t own = fork_generation() + 1;
    uint32_t holder = kFree;
    while (!holder_.compare_exchange_weak(holder, own, std::memory_order_acquire)) {
      if (holder != own) continue;  // free by now, or left by the parent: taken as it is
      holder_.wait(own, std::memory_order_relaxed);
      holder = kFree;
    }
  }
  void unlock() noexcept {
    holder_.store(kFree, std::memory_order_release);
    holder_.notify_one();
  }

 private:
  static constexpr uint32_t kFree = 0;
  std::atomic<uint32_t> holder_{kFree};  // the holder's generation of forks, from 1 on
};

}  // namespace torch_lazy
