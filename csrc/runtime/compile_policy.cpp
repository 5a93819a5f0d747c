#include "runtime/compile_policy.h"

#include <sched.h>

#include <atomic>

#include "runtime/pass_times.h"

namespace torch_lazy {
namespace {

// Before anything was compiled: 1 ms an operation, as of the first windows of a training script
// (later ones find most of their kernels made). Stands for this many operations in the mean.
constexpr int64_t kAssumedOperations = 100;
constexpr int64_t kAssumedNanoseconds = kAssumedOperations * 1'000'000;

// A trace that took a quarter of its compile's time already is likely to take far more: how often
// it was seen is the best guess of how often it will be.
constexpr int64_t kPart = 4;

// Global: compiles are the whole process's.
std::atomic<int64_t> compiled_operations{0};

}  // namespace

bool has_one_core() {
  cpu_set_t cores;
  return sched_getaffinity(0, sizeof cores, &cores) == 0 && CPU_COUNT(&cores) == 1;
}

bool compiling_pays(size_t operations, std::chrono::nanoseconds spent, bool one_core) {
  if (!one_core) return true;
  const double an_operation =
      double(kAssumedNanoseconds + total_pass_time()) /
      double(kAssumedOperations + compiled_operations.load(std::memory_order_relaxed));
  return double(spent.count()) * kPart >= double(operations) * an_operation;
}

void count_compiled(size_t operations) {
  compiled_operations.fetch_add(int64_t(operations), std::memory_order_relaxed);
}

}  // namespace torch_lazy
