#include "runtime/compile_policy.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/pass_times.h"

namespace torch_lazy {
namespace {

// Kernels repeat in a window: one of n operations has about as many different ones as the square
// root of n tells. Measured on windows of 20 to 1,800 operations of training steps, 12 to 25 ms a
// root; it stands for the first windows, before this process has measured anything itself.
constexpr double kAssumedNanoseconds = 15e6;

// Compiled traces that have not run, for so many of which the next one has to have another
// recording. A script of some dozens of sequence lengths has about as many before the first comes
// back.
constexpr int64_t kUnusedForARecording = 16;

// Global: compiles are the whole process's. Of operations' square roots.
std::atomic<double> compiled_roots{0};
// Compiled traces that have not run; one that runs makes up for another.
std::atomic<int64_t> unused{0};

}  // namespace

bool compiling_pays(size_t operations, int64_t recordings, std::chrono::nanoseconds spent,
                    bool core_to_spare) {
  if (recordings <= unused.load(std::memory_order_relaxed) / kUnusedForARecording) return false;
  if (core_to_spare) return true;
  const double a_root = (kAssumedNanoseconds + double(total_pass_time())) /
                        (1 + compiled_roots.load(std::memory_order_relaxed));
  return double(spent.count()) >= std::sqrt(double(operations)) * a_root;
}

void count_compiled(size_t operations) {
  compiled_roots.fetch_add(std::sqrt(double(operations)), std::memory_order_relaxed);
}

void count_ready_trace() {
  ++unused;
}

void count_first_run() {
  // Not below 0: what a script did long ago says nothing of what it does now.
  int64_t before = unused.load(std::memory_order_relaxed);
  while (!unused.compare_exchange_weak(before, std::max<int64_t>(0, before - 2))) {
  }
}

}  // namespace torch_lazy
