#include "runtime/compile_policy.h"

#include <sched.h>

#include <atomic>
#include <cmath>

#include "base/pass_times.h"

namespace torch_lazy {
namespace {

// Kernels repeat in a window: one of n operations has about as many different ones as the square
// root of n tells. Measured on windows of 20 to 1,800 operations of training steps, 12 to 25 ms a
// root; it stands for the first windows, before this process has measured anything itself.
constexpr double kAssumedNanoseconds = 15e6;

// A trace that took an eighth of its compile's time already is likely to take far more: how often
// it was seen is the best guess of how often it will be.
constexpr int64_t kPart = 8;

// Global: compiles are the whole process's. Of operations' square roots.
std::atomic<double> compiled_roots{0};

}  // namespace

bool has_one_core() {
  cpu_set_t cores;
  return sched_getaffinity(0, sizeof cores, &cores) == 0 && CPU_COUNT(&cores) == 1;
}

bool compiling_pays(size_t operations, std::chrono::nanoseconds spent, bool one_core) {
  if (!one_core) return true;
  const double a_root = (kAssumedNanoseconds + double(total_pass_time())) /
                        (1 + compiled_roots.load(std::memory_order_relaxed));
  return double(spent.count()) * kPart >= std::sqrt(double(operations)) * a_root;
}

void count_compiled(size_t operations) {
  compiled_roots.fetch_add(std::sqrt(double(operations)), std::memory_order_relaxed);
}

}  // namespace torch_lazy
