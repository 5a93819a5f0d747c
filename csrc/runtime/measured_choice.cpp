#include "runtime/measured_choice.h"

#include <fmt/format.h>

#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include "base/config.h"
#include "base/debug.h"
#include "base/fork.h"
#include "base/metrics.h"
#include "profile/range.h"
#include "profile/running_window.h"

namespace torch_lazy {
namespace {

// One lock for all choices, so that a fork can take it.
std::mutex& choices_mutex() {
  static auto* const mutex = new ForkSafeMutex(LockOrder::kLeaf);
  return *mutex;
}

// Made when the library is loaded: what is made during a fork is not covered by it.
[[maybe_unused]] std::mutex& choices_mutex_made_at_load = choices_mutex();

// The share of its time that a window has to keep, by what its steps promise, to be compiled again.
constexpr double kWorthCompiling = 0.95;

// What a race costs, about: library calls are made ready and kept in mind, which takes 0.2 ms, and
// turns are taken by what is slower.
constexpr int64_t kRaceNanoseconds = 1'000'000;
// So long a candidate runs alone that still tries out something.
constexpr int64_t kMostAloneNanoseconds = 100 * kRaceNanoseconds;

// What a run counts for that begins before its window is recorded, whether it ends or is given up:
// nobody times it.
constexpr std::chrono::microseconds kStagedRun{50};

double milliseconds(std::chrono::nanoseconds time) {
  return double(time.count()) / 1e6;
}

}  // namespace

const char* name(ChoiceKind kind) {
  switch (kind) {
    case ChoiceKind::kAsCompiled:
      return "as compiled";
    case ChoiceKind::kLibraryCalls:
      return "library calls";
    case ChoiceKind::kPartlyLibraryCalls:
      break;
  }
  return "partly library calls";
}

class MeasuredChoice::CompileRival final : public CompileJob {
 public:
  CompileRival(std::shared_ptr<MeasuredChoice> choice, Choice rival)
      : choice_(std::move(choice)), rival_(std::move(rival)) {}
  void compile() override { choice_->compile_rival(rival_); }

 private:
  const std::shared_ptr<MeasuredChoice> choice_;
  const Choice rival_;
};

// A candidate's, which may have lost by the time that this ends.
class MeasuredChoice::RunOfCandidate final : public StagedRun {
 public:
  RunOfCandidate(std::shared_ptr<MeasuredChoice> choice, std::shared_ptr<Executable> candidate,
                 std::unique_ptr<StagedRun> run)
      : choice_(std::move(choice)), candidate_(std::move(candidate)), run_(std::move(run)) {}
  bool advance(size_t nodes, c10::ArrayRef<at::Tensor> inputs) override {
    const auto alone = lock();
    return run_->advance(nodes, inputs);
  }
  RunResult finish(c10::ArrayRef<at::Tensor> inputs) override {
    const auto alone = lock();
    return run_->finish(inputs);
  }

 private:
  std::unique_lock<ExecutionLock> lock() const {
    return candidate_->is_concurrent() ? std::unique_lock<ExecutionLock>()
                                       : std::unique_lock(choice_->running_);
  }

  const std::shared_ptr<MeasuredChoice> choice_;
  const std::shared_ptr<Executable> candidate_;
  const std::unique_ptr<StagedRun> run_;
};

MeasuredChoice::MeasuredChoice(std::shared_ptr<Executable> compiled, Surroundings surroundings)
    : surroundings_(std::move(surroundings)), settled_(std::move(compiled)) {
  candidates_[Race::kFirst] = {{ChoiceKind::kAsCompiled}, settled_, {}};
}

std::shared_ptr<Executable> MeasuredChoice::settled() const {
  const std::lock_guard<std::mutex> lock(choices_mutex());
  return settled_;
}

RunResult MeasuredChoice::run(c10::ArrayRef<at::Tensor> inputs) {
  if (const auto winner = settled(); winner && winner->is_concurrent()) [[likely]]
    return run_alone(*winner, inputs);
  const std::lock_guard alone(running_);
  const auto winner = settled();
  return winner ? run_alone(*winner, inputs) : run_in_race(inputs);
}

RunResult MeasuredChoice::run_alone(Executable& executable, c10::ArrayRef<at::Tensor> inputs) {
  if (asked_for_rival_.load(std::memory_order_relaxed)) [[likely]]
    return executable.run(inputs);
  const std::chrono::nanoseconds begin = surroundings_.now();
  RunResult result = executable.run(inputs);
  add_alone(surroundings_.now() - begin, result.is_settled);
  return result;
}

void MeasuredChoice::add_alone(std::chrono::nanoseconds taken, bool is_settled) {
  const int64_t ns = taken.count();
  const int64_t enough = is_settled ? kRaceNanoseconds : kMostAloneNanoseconds;
  if (alone_ns_.fetch_add(ns) + ns >= enough && !asked_for_rival_.exchange(true))
    enqueue_rival({ChoiceKind::kLibraryCalls});
}

std::unique_ptr<StagedRun> MeasuredChoice::begin_run() {
  std::shared_ptr<Executable> candidate = settled();
  std::unique_ptr<StagedRun> run = candidate ? candidate->begin_run() : nullptr;
  if (!run) return nullptr;
  if (!asked_for_rival_.load(std::memory_order_relaxed)) add_alone(kStagedRun, /*is_settled=*/true);
  return std::make_unique<RunOfCandidate>(shared_from_this(), std::move(candidate), std::move(run));
}

void MeasuredChoice::enqueue_rival(Choice choice) {
  {
    const std::lock_guard<std::mutex> lock(choices_mutex());
    awaiting_ = true;
  }
  surroundings_.enqueue(std::make_shared<CompileRival>(shared_from_this(), std::move(choice)));
}

RunResult MeasuredChoice::run_in_race(c10::ArrayRef<at::Tensor> inputs) {
  const Race::Way way = race_.next();
  Executable& executable = *candidates_.at(way).executable;
  std::vector<StepTime> steps;
  // Showing steps takes time, more of it where there are more of them.
  std::optional<UnprofiledRun> undisturbed;
  if (race_.purpose() == Race::Run::kCounted) undisturbed.emplace();
  const auto waited = [&] { return !surroundings_.wait || surroundings_.wait(); };
  bool is_timed = waited();
  const bool step_by_step = !surroundings_.wait && race_.purpose() == Race::Run::kStepByStep;
  const std::chrono::nanoseconds begin = surroundings_.now();
  RunResult result = step_by_step ? executable.run_timed(inputs, steps) : executable.run(inputs);
  is_timed = is_timed && waited();
  const std::chrono::nanoseconds taken = surroundings_.now() - begin;
  if (result.failure) return result;
  if (!is_timed) {
    give_up_race();
    return result;
  }
  std::optional<Outcome> outcome;
  {
    const std::lock_guard<std::mutex> lock(choices_mutex());
    if (!steps.empty()) candidates_.at(way).profile.add(steps);
    race_.add(taken);
    if (const auto winner = race_.winner()) {
      std::vector<int64_t> give_back = worth_giving_back(*winner);
      // A single timing of each step is no ground for a compile.
      if (give_back.empty() || race_.rounds() > 1)
        outcome = end_race(*winner, std::move(give_back));
    }
  }
  if (!outcome) return result;
  if (outcome->give_back.empty())
    finish(candidates_[Race::kFirst].choice, outcome->report);
  else
    enqueue_rival({ChoiceKind::kPartlyLibraryCalls, std::move(outcome->give_back)});
  return result;
}

// The lock is held.
std::vector<int64_t> MeasuredChoice::worth_giving_back(Race::Way winner) const {
  if (compiled_again_) return {};
  LosingOperations losing =
      losing_operations(candidates_[Race::kFirst].profile, candidates_[Race::kRival].profile);
  const std::chrono::nanoseconds promised = race_.least(Race::kFirst) - losing.saved;
  if (double(promised.count()) >= kWorthCompiling * double(race_.least(winner).count())) return {};
  return std::move(losing.operations);
}

// The lock is held. The winner is the first candidate from now on.
MeasuredChoice::Outcome MeasuredChoice::end_race(Race::Way winner, std::vector<int64_t> give_back) {
  const Race::Way loser = winner == Race::kFirst ? Race::kRival : Race::kFirst;
  Outcome outcome;
  outcome.give_back = std::move(give_back);
  report_ +=
      fmt::format("{}{}, {:.4f} ms, in place of {}, {:.4f} ms", report_.empty() ? "" : "; ",
                  name(candidates_.at(winner).choice.kind), milliseconds(race_.least(winner)),
                  name(candidates_.at(loser).choice.kind), milliseconds(race_.least(loser)));
  outcome.report = report_;
  least_ = race_.least(winner);
  std::swap(outcome.dropped, candidates_.at(loser).executable);
  if (winner != Race::kFirst) std::swap(candidates_[0], candidates_[1]);
  compiled_again_ |= !outcome.give_back.empty();
  settled_ = candidates_[Race::kFirst].executable;
  return outcome;
}

// Nothing is remembered: another process may be able to wait.
void MeasuredChoice::give_up_race() {
  std::shared_ptr<Executable> dropped;
  {
    const std::lock_guard<std::mutex> lock(choices_mutex());
    std::swap(dropped, candidates_[Race::kRival].executable);
    settled_ = candidates_[Race::kFirst].executable;
  }
  increment(metrics().choices["as compiled, not measured"]);
  if (config().debug >= kDebugGraphs)
    debug_print("choice: " + surroundings_.window + ": the device cannot be waited for");
}

void MeasuredChoice::compile_rival(const Choice& rival) {
  std::optional<Range> range;
  if (is_profiled())
    range.emplace(ProfileEvent{
        .kind = EventKind::kCompile, .name = name(rival.kind), .reason = surroundings_.window});
  std::shared_ptr<Executable> made;
  try {
    made = surroundings_.compile(rival);
  } catch (const std::exception&) {
    // Operations that cannot be left whole, for instance: what won stays.
  }
  Choice choice;
  std::string report;
  {
    const std::lock_guard<std::mutex> lock(choices_mutex());
    if (!std::exchange(awaiting_, false)) return;  // begun again after a fork, although it was done
    if (made) {
      candidates_[Race::kRival] = {rival, std::move(made), {}};
      race_ = Race(least_);
      settled_ = nullptr;
      return;
    }
    choice = candidates_[Race::kFirst].choice;
    report = report_.empty() ? "nothing to race" : report_;
  }
  finish(choice, report);
}

void MeasuredChoice::finish(const Choice& choice, const std::string& report) const {
  increment(metrics().choices[name(choice.kind)]);
  const std::string text = surroundings_.window + ": " + report;
  if (choice.kind != ChoiceKind::kAsCompiled) metrics().explain_choice(text);
  if (config().debug >= kDebugGraphs) debug_print("choice: " + text);
  surroundings_.remember(choice);
}

}  // namespace torch_lazy
