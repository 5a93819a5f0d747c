// Runs on a device that takes several kernels at once and begins before a window is recorded. The
// device is made up: its kernels add their inputs up, on the CPU, when they are launched.

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "plan/executor.h"
#include "planned.h"

namespace torch_lazy {
namespace {

using tests::kTwoProducts;
using tests::planned;

using Calls = std::vector<std::vector<std::string>>;  // the kernels of each

struct Launched {
  Calls calls;
  std::vector<KernelLaunch::Pointers> pointers;  // by kernel
  size_t fails_at = SIZE_MAX;                    // this kernel of a call raises
};

// A kernel is out = 1 + the sum of what it reads; all are 2 x 2.
void run_kernel(const KernelLaunch& launch) {
  const auto& buffers = launch.step->lowered.buffers;
  for (int i = 0; i < 4; ++i) {
    float sum = 1;
    for (size_t b = 0; b < buffers.size(); ++b)
      if (!buffers[b].written) sum += static_cast<const float*>(launch.pointers[b])[i];
    for (size_t b = 0; b < buffers.size(); ++b)
      if (buffers[b].written) static_cast<float*>(launch.pointers[b])[i] = sum;
  }
}

class BatchLauncher final : public Launcher {
 public:
  explicit BatchLauncher(Launched& launched)
      : Launcher(c10::kCPU, {.most_together = 8, .runs_early = true}), launched_(launched) {}

  void launch_together(c10::ArrayRef<KernelLaunch> launches, size_t& started) override {
    std::vector<std::string>& names = launched_.calls.emplace_back();
    for (const KernelLaunch& launch : launches) {
      if (started == launched_.fails_at) throw std::runtime_error("no such kernel");
      run_kernel(launch);
      names.push_back(launch.step->name);
      launched_.pointers.push_back(launch.pointers);
      ++started;
    }
  }

 private:
  Launched& launched_;
};

PlanExecutable executable(const std::string& text, Launched& launched) {
  return {planned(text), std::make_unique<BatchLauncher>(launched)};
}

std::vector<std::string> names(std::initializer_list<const char*> list) {
  return {list.begin(), list.end()};
}

TEST(StagedRun, BeginsWithWhatTheKnownNodesAndInputsAllow) {
  Launched launched;
  PlanExecutable window = executable(kTwoProducts, launched);
  const auto run = window.begin_run();

  const bool advanced = run->advance(1, {at::zeros({2, 2}), at::Tensor()});

  EXPECT_TRUE(advanced);
  EXPECT_EQ(launched.calls, Calls{names({"kernel_exp"})});
}

TEST(StagedRun, WaitsForAnInputThatIsNotThereYet) {
  Launched launched;
  PlanExecutable window = executable(kTwoProducts, launched);
  const auto run = window.begin_run();

  const bool advanced = run->advance(4, {at::Tensor(), at::eye(2)});

  EXPECT_FALSE(advanced);
  EXPECT_TRUE(launched.calls.empty());
}

TEST(StagedRun, ReturnsWhatARunAtOnceReturnsAndDoesNothingTwice) {
  Launched staged_calls, calls;
  PlanExecutable staged = executable(kTwoProducts, staged_calls),
                 whole = executable(kTwoProducts, calls);
  const std::vector<at::Tensor> inputs{at::zeros({2, 2}), at::eye(2)};
  const auto run = staged.begin_run();

  run->advance(2, {inputs[0], at::Tensor()});
  run->advance(3, inputs);
  const RunResult result = run->finish(inputs);

  EXPECT_TRUE(at::equal(result.outputs.at(0), whole.run(inputs).outputs.at(0)));
  EXPECT_EQ(staged_calls.calls, calls.calls);
}

TEST(StagedRun, WhatFailsInAnEarlyStageIsReportedAtTheEnd) {
  Launched launched{.fails_at = 0};
  PlanExecutable window = executable(kTwoProducts, launched);
  const std::vector<at::Tensor> inputs{at::zeros({2, 2}), at::eye(2)};
  const auto run = window.begin_run();

  run->advance(4, inputs);
  const RunResult result = run->finish(inputs);

  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->operation, 0);
  EXPECT_TRUE(result.unchanged);
}

TEST(StagedRun, IsNotThereWhereTheFirstStepWritesAnInput) {
  Launched launched;
  PlanExecutable window = executable(R"(graph(%a : Float(2, 2, strides=[2, 1], device=cpu)):
  %w : Float(2, 2, strides=[2, 1], device=cpu) = aten::sin_(%a)
  return ())",
                                     launched);

  EXPECT_EQ(window.begin_run(), nullptr);
}

// Kernels of two shapes, which are therefore two kernels.
const std::string kTwoKernels = R"(graph(%a : Float(2, 2, strides=[2, 1], device=cpu),
      %b : Float(4, strides=[1], device=cpu)):
  %x : Float(2, 2, strides=[2, 1], device=cpu) = aten::mm(%a, %a)
  %y : Float(2, 2, strides=[2, 1], device=cpu) = aten::exp(%x)
  %z : Float(4, strides=[1], device=cpu) = aten::sin(%b)
  return (%y, %z))";

TEST(LaunchTogether, KernelsWithNothingBetweenThemComeInOneCall) {
  Launched launched;

  const RunResult result =
      executable(kTwoKernels, launched).run({at::zeros({2, 2}), at::zeros({4})});

  EXPECT_FALSE(result.failure);
  EXPECT_EQ(launched.calls, Calls{names({"kernel_exp", "kernel_sin"})});
}

// Allocators give memory of a size that was just given back, as %x would be, to who asks next.
TEST(LaunchTogether, WhatAKernelReadsIsKeptUntilItIsLaunched) {
  Launched launched;

  executable(kTwoKernels, launched).run({at::zeros({2, 2}), at::zeros({4})});

  const void* const read = launched.pointers.at(0).front();
  const void* const written_later = launched.pointers.at(1).back();
  EXPECT_NE(read, written_later);
}

TEST(LaunchTogether, AFailureIsTheKernelsThatDidNotStart) {
  Launched launched{.fails_at = 1};

  const RunResult result =
      executable(kTwoKernels, launched).run({at::zeros({2, 2}), at::zeros({4})});

  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->operation, 2);
}

}  // namespace
}  // namespace torch_lazy
