// Counters behind torch.lazy.metrics(): relaxed atomics, those with a name found behind a lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/api.h"
#include "base/fork.h"

namespace torch_lazy {

class Metrics {
 public:
  using Counter = std::atomic<int64_t>;
  Counter compiles{0};           // graphs compiled
  Counter run_ns{0};             // nanoseconds spent running windows
  Counter windows_run{0};        // windows run by an executable
  Counter onednn_products{0};    // products that oneDNN computed in MKL's place
  Counter dynamic_scalars{0};    // numbers that became arguments of a trace after they had changed
  Counter remembered_traces{0};  // recorded for the first time, and often in earlier processes

  // Counters of recorded operations belong to one recording thread each, which counts without an
  // atomic instruction; readers add them up.
  struct OfThread {
    Counter recorded{0};  // operations that reached the recorder
    Counter deferred{0};  // of those, equal to the next of a known trace, and run by a window
    Counter eager{0};     // of those, run at the call
    Counter bypassed{0};  // operations that could have been recorded, but see trace/bypass.h
  };
  OfThread& of_new_thread();  // lives as long as the process
  struct Operations {
    int64_t recorded = 0, deferred = 0, eager = 0, bypassed = 0;
  };
  TORCH_LAZY_MODULE_API Operations operations() const;

  // Counters by name. A counter lives as long as the process, so who counts often keeps it.
  class ByName {
   public:
    Counter& operator[](std::string_view name);
    // Without those that are 0.
    TORCH_LAZY_MODULE_API std::map<std::string, int64_t> counts() const;
    void reset();

   private:
    mutable ForkSafeMutex mutex_{LockOrder::kLeaf};  // guards the map, not the counters in it
    std::map<std::string, Counter, std::less<>> counters_;
  };
  ByName windows;      // as they ended, see WindowState
  ByName flushes;      // by reason
  ByName syncs;        // by reason
  ByName fallbacks;    // by operator
  ByName early_runs;   // by what became of them, see trace/early_run.h
  ByName choices;      // of measured windows, by what was chosen
  ByName bytes_moved;  // between host and device, by direction and cause; see offload/
  ByName disk_cache;   // hit, miss, stored, evicted; what failed: refused, broken, not stored
  // Of all that stand above, by their names in torch.lazy.metrics().
  TORCH_LAZY_MODULE_API static const std::vector<std::pair<const char*, Counter Metrics::*>>&
  counters();
  TORCH_LAZY_MODULE_API static const std::vector<std::pair<const char*, ByName Metrics::*>>&
  counters_by_name();
  // Choices that need an explanation, the latest hundred of them.
  void explain_choice(std::string text);
  TORCH_LAZY_MODULE_API std::vector<std::string> explained_choices() const;
  TORCH_LAZY_MODULE_API void reset();

 private:
  mutable ForkSafeMutex mutex_{LockOrder::kLeaf};  // guards what is below
  std::deque<OfThread> threads_;
  std::deque<std::string> explained_;
  Operations before_reset_;
};

// Global: counts for the whole process.
TORCH_LAZY_MODULE_API Metrics& metrics();

// Adds one to a counter that only the calling thread writes.
inline void count(Metrics::Counter& counter) {
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

// Relaxed increment: counters order nothing. Returns the new count.
inline int64_t increment(Metrics::Counter& counter, int64_t by = 1) {
  return counter.fetch_add(by, std::memory_order_relaxed) + by;
}

// The counters that one thread used last. Names must stay where they are: literals and names of
// operators do.
class RecentCounters {
 public:
  explicit RecentCounters(Metrics::ByName& counters) : counters_(counters) {}
  void count(std::string_view name) {
    // Fibonacci hashing of the address: the high bits of a product with 2^64 / the golden ratio.
    Recent& recent = recent_[reinterpret_cast<uintptr_t>(name.data()) * 0x9E3779B97F4A7C15u >> 58];
    if (recent.name != name) recent = {name, &counters_[name]};
    increment(*recent.counter);
  }

 private:
  struct Recent {
    std::string_view name;
    Metrics::Counter* counter = nullptr;
  };
  Metrics::ByName& counters_;
  std::array<Recent, 64> recent_;
};

}  // namespace torch_lazy
