// Several threads run one executable: at the same time where it is concurrent, else one after the
// other.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/compiled_trace.h"
#include "runtime/measured_choice.h"

namespace torch_lazy {
namespace {

using std::chrono::steady_clock;

constexpr int kThreads = 4;

// Counts how many threads run it at a time. A run waits until all do, or for a moment.
class CountingExecutable final : public Executable {
 public:
  explicit CountingExecutable(bool concurrent) : concurrent_(concurrent) {}

  RunResult run(c10::ArrayRef<at::Tensor>) override {
    const int running = ++running_;
    int most = most_;
    while (most < running && !most_.compare_exchange_weak(most, running)) {
    }
    const auto end = steady_clock::now() + wait;
    while (most_ < kThreads && steady_clock::now() < end) std::this_thread::yield();
    --running_;
    ++runs_;
    return {};
  }
  std::unique_ptr<StagedRun> begin_run() override { return std::make_unique<InStages>(*this); }
  bool is_concurrent() const override { return concurrent_; }

  int most_at_a_time() const { return most_; }
  int runs() const { return runs_; }

  std::chrono::nanoseconds wait{0};

 private:
  class InStages final : public StagedRun {
   public:
    explicit InStages(CountingExecutable& executable) : executable_(executable) {}
    bool advance(size_t, c10::ArrayRef<at::Tensor> inputs) override {
      executable_.run(inputs);
      return true;
    }
    RunResult finish(c10::ArrayRef<at::Tensor> inputs) override { return executable_.run(inputs); }

   private:
    CountingExecutable& executable_;
  };

  const bool concurrent_;
  std::atomic<int> running_{0}, most_{0}, runs_{0};
};

template <class Run>
void run_on_threads(const Run& run) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(run);
  for (std::thread& thread : threads) thread.join();
}

CompiledTrace::Version version_of(std::shared_ptr<Executable> executable) {
  CompiledTrace::Version version;
  version.executable = std::move(executable);
  version.running = std::make_shared<ExecutionLock>();
  return version;
}

TEST(ConcurrentRuns, ThreadsRunAConcurrentExecutableAtTheSameTime) {
  const auto executable = std::make_shared<CountingExecutable>(true);
  executable->wait = std::chrono::seconds(30);
  const CompiledTrace::Version version = version_of(executable);

  run_on_threads([&] { version.run({}); });

  EXPECT_EQ(executable->most_at_a_time(), kThreads);
}

TEST(ConcurrentRuns, ThreadsRunAnyOtherExecutableOneAfterTheOther) {
  const auto executable = std::make_shared<CountingExecutable>(false);
  executable->wait = std::chrono::milliseconds(5);
  const CompiledTrace::Version version = version_of(executable);

  run_on_threads([&] { version.run({}); });

  EXPECT_EQ(executable->most_at_a_time(), 1);
}

// Of two executables of which the first is three times as fast. It has run once, and they race.
std::shared_ptr<MeasuredChoice> choice_between(const std::shared_ptr<CountingExecutable>& first,
                                               const std::shared_ptr<CountingExecutable>& rival) {
  MeasuredChoice::Surroundings surroundings;
  surroundings.now = [=] { return std::chrono::milliseconds(first->runs() + 3 * rival->runs()); };
  surroundings.compile = [=](const Choice&) { return rival; };
  surroundings.enqueue = [](const std::shared_ptr<CompileJob>& job) { job->compile(); };
  surroundings.remember = [](const Choice&) {};
  auto choice = std::make_shared<MeasuredChoice>(first, std::move(surroundings));
  choice->run({});
  return choice;
}

TEST(ConcurrentRuns, ThreadsTakeTurnsWhileARaceIsOn) {
  const auto first = std::make_shared<CountingExecutable>(true);
  const auto rival = std::make_shared<CountingExecutable>(true);
  first->wait = rival->wait = std::chrono::milliseconds(5);
  const auto choice = choice_between(first, rival);

  run_on_threads([&] { choice->run({}); });

  EXPECT_EQ(first->runs() + rival->runs(), 1 + kThreads);
  EXPECT_LE(std::max(first->most_at_a_time(), rival->most_at_a_time()), 1);
}

TEST(ConcurrentRuns, StagesOfRunsAreOneAfterTheOtherToo) {
  const auto first = std::make_shared<CountingExecutable>(false);
  const auto choice = choice_between(first, std::make_shared<CountingExecutable>(false));
  for (int i = 0; i < 30; ++i) choice->run({});
  first->wait = std::chrono::milliseconds(5);

  run_on_threads([&] {
    const std::unique_ptr<StagedRun> run = choice->begin_run();
    run->advance(1, {});
    choice->run({});
    run->finish({});
  });

  EXPECT_EQ(first->most_at_a_time(), 1);
}

TEST(ConcurrentRuns, ThreadsRunWhatWonARaceAtTheSameTime) {
  const auto first = std::make_shared<CountingExecutable>(true);
  const auto choice = choice_between(first, std::make_shared<CountingExecutable>(true));
  for (int i = 0; i < 30; ++i) choice->run({});
  first->wait = std::chrono::seconds(30);

  run_on_threads([&] { choice->run({}); });

  EXPECT_EQ(first->most_at_a_time(), kThreads);
}

}  // namespace
}  // namespace torch_lazy
