// How often traces are used: by this a full cache tells which to keep.
#pragma once

#include <atomic>
#include <cstdint>

namespace torch_lazy {

// The time of one owner's traces: how often one was recorded again or has run, those that are
// turned away included. Thread-safe.
class TraceClock {
 public:
  uint64_t tick() { return uses_.fetch_add(1, std::memory_order_relaxed) + 1; }
  uint64_t now() const { return uses_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> uses_{0};
};

}  // namespace torch_lazy
