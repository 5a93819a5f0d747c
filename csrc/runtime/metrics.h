// Counters behind torch.lazy.metrics(). Hot ones are relaxed atomics, named ones stand behind a
// lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace torch_lazy {

class Metrics {
 public:
  using Counter = std::atomic<int64_t>;
  Counter compiles{0};     // graphs compiled
  Counter run_ns{0};       // nanoseconds spent running windows
  Counter windows_run{0};  // windows run by an executable
  Counter promoted{0};     // numbers that became arguments of a trace after they had changed

  // Counters of recorded operations belong to one recording thread each, which counts without an
  // atomic instruction; readers add them up.
  struct OfThread {
    Counter recorded{0};     // operations that reached the recorder
    Counter deferred{0};     // of those, equal to the next of a known trace, and run by a window
    Counter run_at_once{0};  // of those, run at the call
  };
  OfThread& of_new_thread();  // lives as long as the process
  struct Operations {
    int64_t recorded = 0, deferred = 0, run_at_once = 0;
  };
  Operations operations() const;

  // Windows as they ended: cold, warm, hot (ran an executable) or diverged (ran by operation).
  void count_window(const char* state) { count(windows_, state); }
  void count_cut(std::string_view cause) { count(cuts_, cause); }
  void count_sync(std::string_view cause) { count(syncs_, cause); }
  // Returns how often, this time included.
  int64_t count_fallback(std::string_view operator_name) {
    return count(fallbacks_, operator_name);
  }

  using Named = std::map<std::string, int64_t, std::less<>>;
  Named windows() const { return copy(windows_); }
  Named cuts() const { return copy(cuts_); }
  Named syncs() const { return copy(syncs_); }
  Named fallbacks() const { return copy(fallbacks_); }
  void reset();

 private:
  int64_t count(Named& named, std::string_view key);
  Named copy(const Named& named) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return named;
  }

  mutable std::mutex mutex_;  // guards what is below
  std::deque<OfThread> threads_;
  Operations before_reset_;
  Named windows_, cuts_, syncs_, fallbacks_;
};

// Global: counts for the whole process.
Metrics& metrics();

// Adds one to a counter that only the calling thread writes.
inline void count(Metrics::Counter& counter) {
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

// Relaxed increment: counters order nothing.
inline void increment(Metrics::Counter& counter, int64_t by = 1) {
  counter.fetch_add(by, std::memory_order_relaxed);
}

}  // namespace torch_lazy
