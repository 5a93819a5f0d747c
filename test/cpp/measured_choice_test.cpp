// Executables whose runs take the time that a test says, by a clock of its own.

#include "runtime/measured_choice.h"

#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "runtime/choice_store.h"

namespace torch_lazy {
namespace {

using std::chrono::nanoseconds;
using Operations = std::vector<int64_t>;

struct FakeStep {
  Operations operations;
  int64_t time;
};

nanoseconds clock_time{0};
nanoseconds device_time{0};  // that a device behind the host has work for

class FakeExecutable final : public Executable {
 public:
  explicit FakeExecutable(std::vector<FakeStep> steps) : steps_(std::move(steps)) {}

  RunResult run(c10::ArrayRef<at::Tensor>) override {
    ++runs;
    for (const FakeStep& step : steps_) clock_time += std::chrono::microseconds(step.time);
    device_time += behind;
    RunResult result;
    result.is_settled = is_settled;
    if (fails) result.failure = RunFailure{0, std::make_exception_ptr(std::runtime_error("data"))};
    return result;
  }
  RunResult run_timed(c10::ArrayRef<at::Tensor> inputs, std::vector<StepTime>& times) override {
    for (const FakeStep& step : steps_)
      times.push_back({step.operations, std::chrono::microseconds(step.time)});
    return run(inputs);
  }

  std::unique_ptr<StagedRun> begin_run() override {
    return is_staged ? std::make_unique<FakeStagedRun>(*this) : nullptr;
  }

  int runs = 0;
  bool fails = false;
  bool is_settled = true;
  bool is_staged = false;
  std::chrono::microseconds behind{0};  // what a device has to do for it when the run has ended

 private:
  class FakeStagedRun final : public StagedRun {
   public:
    explicit FakeStagedRun(FakeExecutable& executable) : executable_(executable) {}
    bool advance(size_t, c10::ArrayRef<at::Tensor>) override { return true; }
    RunResult finish(c10::ArrayRef<at::Tensor> inputs) override { return executable_.run(inputs); }

   private:
    FakeExecutable& executable_;
  };

  const std::vector<FakeStep> steps_;
};

// A choice between two executables, and what it asked of its surroundings. Steps are planted in
// microseconds.
struct Planted {
  Planted(std::vector<FakeStep> compiled_steps, std::vector<FakeStep> library_steps,
          bool behind_the_host = false)
      : compiled(std::make_shared<FakeExecutable>(std::move(compiled_steps))),
        library(std::make_shared<FakeExecutable>(std::move(library_steps))),
        library_to_come(library) {
    MeasuredChoice::Surroundings surroundings;
    surroundings.now = [] { return clock_time; };
    if (behind_the_host) {
      surroundings.wait = [this] {
        clock_time += std::exchange(device_time, nanoseconds{0});
        ++waits;
        return can_wait;
      };
    }
    surroundings.compile = [this](const Choice& rival) {
      if (rival.kind == ChoiceKind::kLibraryCalls) return std::exchange(library_to_come, nullptr);
      given_back.push_back(rival.library_operations);
      if (!partly) throw std::runtime_error("cannot leave them whole");
      return partly;
    };
    surroundings.enqueue = [this](std::shared_ptr<CompileJob> job) {
      jobs.push_back(std::move(job));
    };
    surroundings.remember = [this](const Choice& made) { remembered.push_back(made); };
    surroundings.window = "window";
    choice = std::make_shared<MeasuredChoice>(compiled, std::move(surroundings));
    metrics().reset();
  }

  void run(int times) {
    for (int i = 0; i < times; ++i) choice->run({});
  }
  void compile_rival() {
    for (const auto& job : std::exchange(jobs, {})) job->compile();
  }
  void begin_race() {
    while (jobs.empty()) run(1);
    compile_rival();
  }

  std::shared_ptr<FakeExecutable> compiled, library, library_to_come, partly;
  std::vector<std::shared_ptr<CompileJob>> jobs;
  std::vector<Operations> given_back;
  std::vector<Choice> remembered;
  int waits = 0;
  bool can_wait = true;
  std::shared_ptr<MeasuredChoice> choice;
};

std::vector<FakeStep> one_step(int64_t time) {
  return {{{0}, time}};
}

TEST(MeasuredChoice, WhatIsCompiledRunsAloneUntilThatTookAsLongAsARace) {
  Planted window(one_step(300), one_step(100));

  window.run(3);
  EXPECT_TRUE(window.jobs.empty());

  window.run(10);
  EXPECT_EQ(window.jobs.size(), 1U);
  EXPECT_EQ(window.compiled->runs, 13);
  EXPECT_EQ(window.library->runs, 0);
}

TEST(MeasuredChoice, WhatTriesOutSomethingRunsAloneForLonger) {
  Planted window(one_step(1000), one_step(100));
  window.compiled->is_settled = false;

  window.run(50);
  EXPECT_TRUE(window.jobs.empty());

  window.compiled->is_settled = true;
  window.run(1);
  EXPECT_EQ(window.jobs.size(), 1U);
}

TEST(MeasuredChoice, WhatNeverSettlesIsRacedInTheEnd) {
  Planted window(one_step(1000), one_step(100));
  window.compiled->is_settled = false;

  window.run(101);

  EXPECT_EQ(window.jobs.size(), 1U);
}

TEST(MeasuredChoice, EveryRunOfTheProgramIsOneRunOfOneCandidate) {
  Planted window(one_step(100), one_step(110));
  window.begin_race();
  const int alone = window.compiled->runs;

  window.run(20);

  EXPECT_EQ(window.compiled->runs + window.library->runs, alone + 20);
  EXPECT_GT(window.library->runs, 0);
}

TEST(MeasuredChoice, ASlowKernelIsReplacedByLibraryCallsWithinThirtyRunsAndSaidSo) {
  Planted window(one_step(3000), one_step(1000));
  window.begin_race();
  window.run(29);
  const int runs = window.compiled->runs;

  window.run(100);

  EXPECT_EQ(window.compiled->runs, runs);
  EXPECT_EQ(metrics().choices.counts(), (std::map<std::string, int64_t>{{"library calls", 1}}));
  EXPECT_EQ(metrics().explained_choices(),
            (std::vector<std::string>{"window: library calls, 1.0000 ms, in place of as compiled, "
                                      "3.0000 ms"}));
  EXPECT_EQ(window.remembered, (std::vector<Choice>{{ChoiceKind::kLibraryCalls}}));
}

TEST(MeasuredChoice, OfADeviceBehindTheHostIsByWhatTheDeviceTook) {
  Planted window(one_step(10), one_step(40), /*behind_the_host=*/true);
  window.compiled->behind = std::chrono::microseconds(5000);
  window.library->behind = std::chrono::microseconds(100);
  window.begin_race();
  EXPECT_EQ(window.waits, 0) << "nobody waits outside of a race";

  window.run(30);
  const int waits = window.waits;
  window.run(100);

  EXPECT_EQ(metrics().choices.counts(), (std::map<std::string, int64_t>{{"library calls", 1}}));
  EXPECT_GT(waits, 0);
  EXPECT_EQ(window.waits, waits) << "the race is over";
}

TEST(MeasuredChoice, IsNoneOnADeviceThatCannotBeWaitedFor) {
  Planted window(one_step(1000), one_step(10), /*behind_the_host=*/true);
  window.can_wait = false;
  const std::weak_ptr<FakeExecutable> library = std::exchange(window.library, nullptr);
  window.begin_race();

  window.run(50);

  EXPECT_TRUE(library.expired());
  EXPECT_EQ(metrics().choices.counts(),
            (std::map<std::string, int64_t>{{"as compiled, not measured", 1}}));
  EXPECT_EQ(window.remembered, std::vector<Choice>{}) << "another process may be able to";
}

TEST(MeasuredChoice, ComesToRunsThatBeginEarlyToo) {
  Planted window(one_step(10), one_step(100), /*behind_the_host=*/true);
  window.compiled->is_staged = true;
  std::unique_ptr<StagedRun> early;
  while (window.jobs.empty()) early = window.choice->begin_run();
  window.compile_rival();

  EXPECT_EQ(window.choice->begin_run(), nullptr) << "races are between whole runs";
  window.run(100);
  EXPECT_NE(window.choice->begin_run(), nullptr) << "of what has won";
}

TEST(MeasuredChoice, ARunThatHasBegunEndsThoughItsCandidateLostMeanwhile) {
  Planted window(one_step(1000), one_step(10), /*behind_the_host=*/true);
  window.compiled->is_staged = true;
  const std::unique_ptr<StagedRun> early = window.choice->begin_run();
  window.begin_race();
  window.run(100);
  const std::weak_ptr<FakeExecutable> loser = std::exchange(window.compiled, nullptr);

  ASSERT_FALSE(loser.expired());
  EXPECT_FALSE(early->finish({}).failure);
}

TEST(MeasuredChoice, FastKernelsStayAndLibraryCallsAreDropped) {
  Planted window(one_step(100), one_step(300));
  const std::weak_ptr<FakeExecutable> library = std::exchange(window.library, nullptr);
  window.begin_race();

  window.run(30);

  EXPECT_TRUE(library.expired());
  EXPECT_EQ(window.remembered, (std::vector<Choice>{{ChoiceKind::kAsCompiled}}));
  EXPECT_TRUE(metrics().explained_choices().empty());
}

TEST(MeasuredChoice, RunsThatFailAreNoSamples) {
  Planted window(one_step(100), one_step(300));
  window.begin_race();
  const int alone = window.compiled->runs;
  window.compiled->fails = true;

  window.run(50);

  EXPECT_EQ(window.compiled->runs, alone + 50);
  EXPECT_TRUE(window.remembered.empty());
}

// Operations 0 and 1 are one kernel that is three times as fast as they are; 2 is one that loses.
Planted window_with_a_losing_kernel() {
  return {{{{0, 1}, 200}, {{2}, 500}}, {{{0}, 300}, {{1}, 300}, {{2}, 200}}};
}

TEST(MeasuredChoice, AKernelThatLosesIsGivenBackAlone) {
  Planted window = window_with_a_losing_kernel();
  window.partly =
      std::make_shared<FakeExecutable>(std::vector<FakeStep>{{{0, 1}, 200}, {{2}, 200}});
  window.begin_race();
  window.run(24);

  window.compile_rival();
  window.run(24);
  const int runs = window.partly->runs;
  window.run(10);

  EXPECT_EQ(window.given_back, (std::vector<Operations>{{2}}));
  EXPECT_EQ(window.partly->runs, runs + 10);
  EXPECT_EQ(window.remembered, (std::vector<Choice>{{ChoiceKind::kPartlyLibraryCalls, {2}}}));
  EXPECT_EQ(metrics().choices.counts(),
            (std::map<std::string, int64_t>{{"partly library calls", 1}}));
}

TEST(MeasuredChoice, WhatWonRunsUntilItIsCompiledAgain) {
  Planted window = window_with_a_losing_kernel();
  window.begin_race();
  window.run(24);
  const int runs = window.compiled->runs + window.library->runs;

  window.run(10);

  EXPECT_EQ(window.jobs.size(), 1U);
  EXPECT_EQ(window.compiled->runs + window.library->runs, runs + 10);
  EXPECT_TRUE(window.remembered.empty());
}

TEST(MeasuredChoice, IsCompiledAgainOnceAtMost) {
  Planted window = window_with_a_losing_kernel();
  // It does not keep what was promised: the kernel that loses is in it still.
  window.partly =
      std::make_shared<FakeExecutable>(std::vector<FakeStep>{{{0, 1}, 200}, {{2}, 500}});
  window.begin_race();
  window.run(24);
  window.compile_rival();

  window.run(100);

  EXPECT_EQ(window.given_back.size(), 1U);
  EXPECT_TRUE(window.jobs.empty());
  EXPECT_EQ(window.remembered, (std::vector<Choice>{{ChoiceKind::kAsCompiled}}));
}

TEST(MeasuredChoice, WhatCannotBeCompiledAgainLeavesTheWinner) {
  Planted window = window_with_a_losing_kernel();
  window.begin_race();
  window.run(24);

  window.compile_rival();
  window.run(10);

  EXPECT_EQ(window.remembered, (std::vector<Choice>{{ChoiceKind::kAsCompiled}}));
}

TEST(ChoiceStore, AChoiceIsReadBackFromItsText) {
  for (const Choice& choice : {Choice{ChoiceKind::kAsCompiled}, Choice{ChoiceKind::kLibraryCalls},
                               Choice{ChoiceKind::kPartlyLibraryCalls, {3, 14, 15}}})
    EXPECT_EQ(choice_from_string(to_string(choice)), choice);
}

TEST(ChoiceStore, OtherTextIsNoChoice) {
  for (const char* text :
       {"", "library", "as compiled\n3", "partly library calls\n", "partly library calls\n3 x"})
    EXPECT_EQ(choice_from_string(text), std::nullopt) << text;
}

}  // namespace
}  // namespace torch_lazy
