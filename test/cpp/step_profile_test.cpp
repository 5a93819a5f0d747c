#include "runtime/step_profile.h"

#include <gtest/gtest.h>

#include <utility>

namespace torch_lazy {
namespace {

using std::chrono::nanoseconds;
using Operations = std::vector<int64_t>;
using Steps = std::vector<std::pair<Operations, int64_t>>;

StepProfile profile(const Steps& steps) {
  std::vector<StepTime> run;
  for (const auto& [operations, time] : steps) run.push_back({operations, nanoseconds(time)});
  StepProfile made;
  made.add(run);
  return made;
}

TEST(StepProfile, KeepsTheLeastTimeOfEachStep) {
  StepProfile made = profile({{{0}, 10}, {{1}, 90}});
  const Operations first{0}, second{1};

  made.add({{first, nanoseconds(50)}, {second, nanoseconds(20)}});

  EXPECT_EQ(made.steps()[0].time, nanoseconds(10));
  EXPECT_EQ(made.steps()[1].time, nanoseconds(20));
  EXPECT_EQ(made.runs(), 2U);
}

TEST(StepProfile, LeavesOutARunThatStoppedEarly) {
  StepProfile made = profile({{{0}, 10}, {{1}, 90}});
  const Operations first{0};

  made.add({{first, nanoseconds(1)}});

  EXPECT_EQ(made.steps()[0].time, nanoseconds(10));
}

TEST(LosingOperations, AreThoseWhoseKernelTakesLonger) {
  const LosingOperations losing = losing_operations(profile({{{0, 1}, 50}, {{2}, 90}}),
                                                    profile({{{0}, 40}, {{1}, 40}, {{2}, 30}}));

  EXPECT_EQ(losing.operations, Operations{2});
  EXPECT_EQ(losing.saved, nanoseconds(60));
}

TEST(LosingOperations, StepsWithAnOperationInCommonAreJudgedTogether) {
  // Operation 1 is done by both kernels: together they win.
  const LosingOperations losing = losing_operations(profile({{{0, 1}, 90}, {{1, 2}, 10}}),
                                                    profile({{{0}, 40}, {{1}, 40}, {{2}, 40}}));

  EXPECT_TRUE(losing.operations.empty());
}

TEST(LosingOperations, NeedMoreThanATenthToLose) {
  EXPECT_TRUE(losing_operations(profile({{{0}, 109}}), profile({{{0}, 100}})).operations.empty());
}

TEST(LosingOperations, OfAnExecutableThatDoesNotTellItsStepsThereAreNone) {
  EXPECT_TRUE(losing_operations(StepProfile(), profile({{{0}, 100}})).operations.empty());
}

}  // namespace
}  // namespace torch_lazy
