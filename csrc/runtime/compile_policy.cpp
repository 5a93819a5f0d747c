#include "runtime/compile_policy.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>

#include "base/fork.h"

namespace torch_lazy {
namespace {

using std::chrono::nanoseconds;

// Compiled traces that have not run, for so many of which the next one has to have another
// recording. A script of some dozens of sequence lengths has about as many before the first comes
// back.
constexpr int64_t kUnusedForARecording = 16;

// Global: compiles are the whole process's.
struct Costs {
  ForkSafeMutex mutex{LockOrder::kLeaf};  // guards `costs`
  CompileCosts costs;
};

Costs& process_costs() {
  static auto* const instance = new Costs;
  return *instance;
}

// Made when the library is loaded: what is made during a fork is not covered by it.
[[maybe_unused]] Costs& made_at_load = process_costs();

// Compiled traces that have not run; one that runs makes up for another.
std::atomic<int64_t> unused{0};

}  // namespace

CompileCosts::Nanoseconds CompileCosts::expect(CompileSize trace) const {
  const Sum& sum = operators_.contains(trace.operators) ? known_ : new_;
  return Nanoseconds(int64_t(std::sqrt(double(trace.operations)) * sum.nanoseconds / sum.roots));
}

void CompileCosts::note(CompileSize trace, Nanoseconds took) {
  Sum& sum = operators_.insert(trace.operators).second ? new_ : known_;
  sum.nanoseconds += double(took.count());
  sum.roots += std::sqrt(double(trace.operations));
}

CompileWhen when_compiling_pays(CompileSize trace, int64_t recordings, nanoseconds spent,
                                bool (*has_core)()) {
  if (recordings <= unused.load(std::memory_order_relaxed) / kUnusedForARecording)
    return CompileWhen::kNot;
  {
    const std::lock_guard lock(process_costs().mutex);
    if (spent >= process_costs().costs.expect(trace)) return CompileWhen::kInTurn;
  }
  return has_core() ? CompileWhen::kIfACoreIsIdle : CompileWhen::kNot;
}

void count_compiled(CompileSize trace, nanoseconds took) {
  const std::lock_guard lock(process_costs().mutex);
  process_costs().costs.note(trace, took);
}

void forget_compiled() {
  const std::lock_guard lock(process_costs().mutex);
  process_costs().costs.forget_operators();
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
