// When a warm trace is worth compiling.
//
// With an idle core at once: the compile costs the script nothing. Where the script's threads
// take all cores, or there is but one, it pays for every compile, and a trace that is seen twice
// need not be seen again: there it is put off until the script has spent as long in windows of the
// trace, or of others with the same operators, as the compile will take. Whatever comes then, they
// take no more than about twice what they would without, and a script that goes on for long is no
// later than by that. (A script of many sequence lengths meets each of them seldom: the first that
// is compiled makes the kernels of all.)
//
// A trace that ran often in an earlier process is likely to run as often in this one, and its
// kernels are on disk: where that was worth a few times the compile, it is compiled when it is
// first recorded. A script that ends earlier this time shall not be much longer for it: such
// compiles get a share of the time since the first of them.
//
// Some scripts make traces that are recorded a few times and never again: the layers of a network
// that is given one more token each time. The more compiled traces have not run, the more
// recordings the next one has to have.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "runtime/idle_cores.h"

namespace torch_lazy {

// What of a trace its compile's time depends on.
struct CompileSize {
  size_t operations = 0;
  // Tape::hash_of_operators(). Kernels take sizes as arguments: where a trace of other sizes, or of
  // a loop with another number of rounds, was compiled, most of this one's are found. (Of other
  // dtypes they are not, nor of a loop that is one kernel as a whole, and the first such compile is
  // expected to be cheaper than it is.)
  uint64_t operators = 0;
};

// How long compiles will take, by how long others have taken, in processor time. Not for several
// threads at once.
class CompileCosts {
 public:
  using Nanoseconds = std::chrono::nanoseconds;

  Nanoseconds expect(CompileSize trace) const;
  void note(CompileSize trace, Nanoseconds took);
  // The script spent so long in a recording of the trace, whose compile will cost as much.
  void note_recorded(CompileSize trace, Nanoseconds spent, Nanoseconds cost);
  // Whether recordings of these operators, or the trace's `own` alone, have taken as long as a
  // compile of that cost will. They pay for it then, and no more for another one.
  bool pay(CompileSize trace, Nanoseconds cost, Nanoseconds own);

  // An earlier process has compiled it: its kernels are on disk.
  void note_compiled_before(CompileSize trace) { operators_.insert(trace.operators); }
  // What was compiled is gone.
  void forget_operators() {
    operators_.clear();
    spent_.clear();
  }

 private:
  // Kernels repeat in a window: one of n operations has about as many different ones as the square
  // root of n tells.
  struct Sum {
    double nanoseconds, roots;
  };

  // They begin with what stands for the first windows, before anything is measured: of 20 to 1,800
  // operations of training steps, 12 to 25 ms a root, and a tenth of it where kernels are found.
  Sum new_{15e6, 1}, known_{1.5e6, 1};
  std::unordered_set<uint64_t> operators_;  // of what was compiled, by this process or before it
  // By operators, in recordings that have paid for no compile: no more than pays for a few, so that
  // nothing piles up. Below 0 where a trace's own recordings have paid, and others of them.
  std::unordered_map<uint64_t, Nanoseconds> spent_;
};

// What compiles may take on the word of earlier processes: a window or two at once, and then a
// share of the time that goes by. Not for several threads at once.
class CompileAllowance {
 public:
  using Nanoseconds = std::chrono::nanoseconds;

  // Whether a compile of that cost is within it, which is counted then. `elapsed`: since any
  // moment, the same in all calls.
  bool take(Nanoseconds cost, Nanoseconds elapsed);

 private:
  static constexpr Nanoseconds kAtOnce{20'000'000}, kMost{500'000'000};
  static constexpr int64_t kShare = 8;  // an eighth
  Nanoseconds left_ = kAtOnce;
  std::optional<Nanoseconds> last_;  // `elapsed` of the last call
};

enum class CompileWhen : uint8_t {
  kNot,
  kIfACoreIsIdle,  // when it is its turn; else it leaves the queue
  kInTurn,
};

// How often a trace was met.
struct TraceUse {
  int64_t recordings = 0;             // since it became warm
  std::chrono::nanoseconds spent{0};  // by the script, in them
  std::chrono::nanoseconds last{0};   // in the last of them
  // What its runs in an earlier process would have taken as recordings; 0 where it is not
  // remembered.
  std::chrono::nanoseconds spent_before{0};
};

// Asked after a recording, by what this process's compiles have cost. `has_core` is asked
// last.
CompileWhen when_compiling_pays(CompileSize trace, const TraceUse& use,
                                bool (*has_core)() = has_idle_core);

// What the next compiles are expected to cost is told from those that ended well.
void count_compiled(CompileSize trace, std::chrono::nanoseconds took);
// Nothing is compiled any more.
void forget_compiled();

// A trace has its first version, or runs for the first time.
void count_ready_trace();
void count_first_run();

}  // namespace torch_lazy
