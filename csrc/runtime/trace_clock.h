// How lately traces were used: by this a full cache chooses which to keep.
#pragma once

#include <atomic>
#include <cstddef>
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

// Whether one of so many traces, which was used last then, is still in use. Traces that take turns
// come once in as many uses as there are of them; at random, one in three thousand stays away for
// eight times as long.
inline bool is_in_use(uint64_t last_use, uint64_t now, size_t traces) {
  constexpr uint64_t kTurns = 8;
  return now - last_use <= kTurns * traces;
}

}  // namespace torch_lazy
