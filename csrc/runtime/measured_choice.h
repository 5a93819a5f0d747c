// The faster of two executables of one graph, found by running them in turns.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "runtime/compile_queue.h"
#include "runtime/execution_lock.h"
#include "runtime/race.h"
#include "runtime/step_profile.h"

namespace torch_lazy {

enum class ChoiceKind : uint8_t {
  kAsCompiled,         // what the backend made
  kLibraryCalls,       // the recorded operations one by one
  kPartlyLibraryCalls  // what the backend made where some operations are library calls
};
const char* name(ChoiceKind kind);

struct Choice {
  ChoiceKind kind = ChoiceKind::kAsCompiled;
  std::vector<int64_t> library_operations = {};  // of kPartlyLibraryCalls
  bool operator==(const Choice&) const = default;
};

// Every run is one of the program's, by one of the candidates: nothing is done twice. What the
// backend compiled runs alone until it has taken as long as it costs to race it: of windows that
// run a few times and never again a script may have hundreds. So it does, within limits, as long as
// it tries out something itself. Then library calls are made ready in
// the background, and runs take turns until it is clear which candidate is faster (race.h). What
// both told of their steps may promise that giving some operations back to library calls is faster
// still: once in its life a choice has the backend compile the graph so, too, and races that
// against the winner. Losers are dropped.
//
// A run on a device that runs behind the host is timed from where its stream is idle to where it is
// idle again, for which the host waits, in a race only. Runs that begin before their windows are
// recorded are no part of one, and their steps have no times.
//
// While a race is on, one thread runs at a time, and the others wait for it; afterwards it is the
// winner that says whether it is concurrent. What a run changes here it changes under a lock that
// forks take, together with the compile thread.
class MeasuredChoice final : public Executable,
                             public std::enable_shared_from_this<MeasuredChoice> {
 public:
  // What a choice asks of its surroundings.
  struct Surroundings {
    std::function<std::chrono::nanoseconds()> now;
    // Of a device that runs behind the host: waits until it has done what this thread gave it. Null
    // of others. Returns false where it cannot; the race is given up then.
    std::function<bool()> wait;
    // The executable of that choice, which is not kAsCompiled. Called on the compile thread; may
    // raise.
    std::function<std::shared_ptr<Executable>(const Choice&)> compile;
    std::function<void(std::shared_ptr<CompileJob>)> enqueue;
    // Called once, with what is used from then on.
    std::function<void(const Choice&)> remember;
    std::string window;  // names it for users
  };

  MeasuredChoice(std::shared_ptr<Executable> compiled, Surroundings surroundings);

  RunResult run(c10::ArrayRef<at::Tensor> inputs) override;
  std::unique_ptr<StagedRun> begin_run() override;
  bool is_concurrent() const override { return true; }

 private:
  class CompileRival;
  class RunOfCandidate;
  struct Candidate {
    Choice choice;
    std::shared_ptr<Executable> executable;
    StepProfile profile;
  };
  // What follows from a race that is over, to be done without the lock.
  struct Outcome {
    std::shared_ptr<Executable> dropped;
    std::vector<int64_t> give_back;  // empty where the choice is final
    std::string report;
  };

  RunResult run_alone(Executable& executable, c10::ArrayRef<at::Tensor> inputs);
  void add_alone(std::chrono::nanoseconds taken, bool is_settled);
  RunResult run_in_race(c10::ArrayRef<at::Tensor> inputs);
  Outcome end_race(Race::Way winner, std::vector<int64_t> give_back);
  void give_up_race();
  std::vector<int64_t> worth_giving_back(Race::Way winner) const;
  void enqueue_rival(Choice choice);
  void compile_rival(const Choice& rival);
  void finish(const Choice& choice, const std::string& report) const;

  std::shared_ptr<Executable> settled() const;

  const Surroundings surroundings_;
  std::atomic<bool> asked_for_rival_ = false;  // for the first one
  std::atomic<int64_t> alone_ns_{0};           // what runs before that took
  ExecutionLock running_;  // held by who runs, unless that is a winner that is concurrent
  // Guarded by one lock of all choices (measured_choice.cpp); executables are called without it,
  // because only who holds running_ replaces them, and the rival only while there is none:
  std::shared_ptr<Executable> settled_;  // the winner so far; null while a race is on
  std::array<Candidate, 2> candidates_;  // by Race::Way
  Race race_;
  bool compiled_again_ = false;  // it was asked for, with operations given back
  bool awaiting_ = false;        // a rival was asked for, and is not there yet
  // That the first candidate took.
  std::chrono::nanoseconds least_ = std::chrono::nanoseconds::max();
  std::string report_;  // of the races so far
};

}  // namespace torch_lazy
