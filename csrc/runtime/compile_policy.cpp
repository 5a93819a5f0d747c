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

// So many times what a compile costs has to have been spent in its trace's runs in an earlier
// process. The script may be a shorter one this time.
constexpr int64_t kSure = 4;

// Global: compiles are the whole process's.
struct Costs {
  ForkSafeMutex mutex{LockOrder::kLeaf};  // guards what is below
  CompileCosts costs;
  CompileAllowance allowance;
};

Costs& process_costs() {
  static auto* const instance = new Costs;
  return *instance;
}

// Made when the library is loaded: what is made during a fork is not covered by it.
[[maybe_unused]] Costs& process_costs_made_at_load = process_costs();

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

void CompileCosts::note_recorded(CompileSize trace, Nanoseconds spent, Nanoseconds cost) {
  constexpr size_t kMostOperators = 4096;  // then all begin anew
  constexpr int kMostCompiles = 4;
  if (spent_.size() >= kMostOperators) spent_.clear();
  Nanoseconds& all = spent_[trace.operators];
  all = std::min(all + spent, std::max(all, kMostCompiles * cost));
}

bool CompileCosts::pay(CompileSize trace, Nanoseconds cost, Nanoseconds own) {
  Nanoseconds& spent = spent_[trace.operators];
  if (std::max(spent, own) < cost) return false;
  spent -= cost;
  return true;
}

bool CompileAllowance::take(Nanoseconds cost, Nanoseconds elapsed) {
  left_ = std::min(left_ + (elapsed - last_.value_or(elapsed)) / kShare, kMost);
  last_ = elapsed;
  if (cost > left_) return false;
  left_ -= cost;
  return true;
}

CompileWhen when_compiling_pays(CompileSize trace, const TraceUse& use, bool (*has_core)()) {
  const bool remembered = use.spent_before > nanoseconds(0);
  if (!remembered &&
      use.recordings <= unused.load(std::memory_order_relaxed) / kUnusedForARecording)
    return CompileWhen::kNot;
  {
    Costs& all = process_costs();
    const std::lock_guard lock(all.mutex);
    if (remembered) all.costs.note_compiled_before(trace);
    const nanoseconds cost = all.costs.expect(trace);
    // The first recording of all is the slowest, and tells nothing yet.
    if (use.recordings > int64_t(remembered)) {
      all.costs.note_recorded(trace, use.last, cost);
      if (all.costs.pay(trace, cost, use.spent)) return CompileWhen::kInTurn;
    }
    if (use.spent_before >= kSure * cost &&
        all.allowance.take(cost, std::chrono::steady_clock::now().time_since_epoch()))
      return CompileWhen::kInTurn;
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
