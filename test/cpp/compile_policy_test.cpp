#include "runtime/compile_policy.h"

#include <gtest/gtest.h>

namespace torch_lazy {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

bool has_a_core() {
  return true;
}
bool has_none() {
  return false;
}

constexpr CompileSize kTrace{.operations = 1024, .operators = 1};

TEST(CompileCosts, AreThoseOfCompilesSoFarByTheSquareRootOfOperations) {
  CompileCosts costs;
  for (uint64_t i = 0; i < 1000; ++i)
    costs.note({.operations = 1024, .operators = i}, milliseconds(64));

  const nanoseconds cost = costs.expect({.operations = 256, .operators = 1000});

  EXPECT_NEAR(double(cost.count()), 32e6, 1e6);
}

TEST(CompileCosts, OfOperatorsThatWereCompiledForOtherSizesAreApart) {
  CompileCosts costs;
  costs.note(kTrace, milliseconds(640));
  for (int i = 0; i < 1000; ++i) costs.note(kTrace, milliseconds(3));

  const nanoseconds known = costs.expect(kTrace);
  const nanoseconds other = costs.expect({.operations = 1024, .operators = 2});

  EXPECT_NEAR(double(known.count()), 3e6, 1e6);
  EXPECT_GT(other, milliseconds(500));
}

TEST(CompileCosts, AreThoseOfNewOperatorsWhereNothingIsCompiledAnyMore) {
  CompileCosts costs;
  costs.note(kTrace, milliseconds(640));
  for (int i = 0; i < 1000; ++i) costs.note(kTrace, milliseconds(3));

  costs.forget_operators();

  EXPECT_GT(costs.expect(kTrace), milliseconds(500));
}

class CompilePolicy : public ::testing::Test {
 protected:
  // Other tests of the process compile traces that never run.
  void SetUp() override {
    for (int i = 0; i < 10'000; ++i) count_first_run();
    forget_compiled();
  }
};

TEST_F(CompilePolicy, WithAnIdleCoreATraceIsCompiledAtOnce) {
  EXPECT_EQ(when_compiling_pays(kTrace, {.recordings = 1}, has_a_core),
            CompileWhen::kIfACoreIsIdle);
}

TEST_F(CompilePolicy, WithoutOneACompileWaitsUntilItsTraceHasTakenTime) {
  const TraceUse of_a_moment = {.recordings = 1, .last = nanoseconds(1000)};
  const TraceUse of_hours = {.recordings = 1, .last = hours(10)};

  EXPECT_EQ(when_compiling_pays(kTrace, of_a_moment, has_none), CompileWhen::kNot);
  EXPECT_EQ(when_compiling_pays(kTrace, of_hours, has_none), CompileWhen::kInTurn);
  EXPECT_EQ(when_compiling_pays(kTrace, of_hours, has_a_core), CompileWhen::kInTurn);
}

TEST_F(CompilePolicy, ATraceThatAnEarlierProcessRanForLongIsCompiledAtOnce) {
  constexpr CompileSize small{.operations = 1, .operators = 3};
  const TraceUse for_long = {.recordings = 1, .spent_before = hours(10)};
  const TraceUse briefly = {.recordings = 1, .spent_before = nanoseconds(1000)};

  EXPECT_EQ(when_compiling_pays(small, for_long, has_none), CompileWhen::kInTurn);
  EXPECT_EQ(when_compiling_pays(small, briefly, has_none), CompileWhen::kNot);
}

TEST_F(CompilePolicy, TheFirstRecordingOfARememberedTraceTellsNothing) {
  constexpr CompileSize trace{.operations = 1024, .operators = 4};
  const TraceUse first = {.recordings = 1, .last = hours(10), .spent_before = nanoseconds(1000)};
  const TraceUse second = {.recordings = 2, .last = hours(10), .spent_before = nanoseconds(1000)};

  EXPECT_EQ(when_compiling_pays(trace, first, has_none), CompileWhen::kNot);
  EXPECT_EQ(when_compiling_pays(trace, second, has_none), CompileWhen::kInTurn);
}

TEST(CompileCosts, ArePaidByAllTracesOfTheSameOperatorsTogetherAndOnce) {
  constexpr nanoseconds cost = milliseconds(10), none = nanoseconds(0);
  CompileCosts costs;
  costs.note_recorded(kTrace, milliseconds(6), cost);
  const bool too_early = costs.pay(kTrace, cost, none);

  costs.note_recorded(kTrace, milliseconds(6), cost);

  EXPECT_FALSE(too_early);
  EXPECT_FALSE(costs.pay({.operations = 1024, .operators = 2}, cost, none));
  EXPECT_TRUE(costs.pay(kTrace, cost, none));
  EXPECT_FALSE(costs.pay(kTrace, cost, none));
}

TEST(CompileCosts, OfATraceArePaidByItsOwnRecordingsWhateverOthersHaveUsed) {
  constexpr nanoseconds cost = milliseconds(10), none = nanoseconds(0);
  CompileCosts costs;

  EXPECT_TRUE(costs.pay(kTrace, cost, /*own=*/milliseconds(11)));

  costs.note_recorded(kTrace, milliseconds(19), cost);
  EXPECT_FALSE(costs.pay(kTrace, cost, none));
}

TEST(CompileCosts, ArePaidForAFewCompilesAheadAndNoMore) {
  constexpr nanoseconds cost = milliseconds(10), none = nanoseconds(0);
  CompileCosts costs;
  costs.note_recorded(kTrace, hours(1), cost);

  int paid = 0;
  while (costs.pay(kTrace, cost, none)) ++paid;

  EXPECT_EQ(paid, 4);
}

TEST(CompileCosts, AreNotPaidByWhatWasForgotten) {
  CompileCosts costs;
  costs.note_recorded(kTrace, hours(1), milliseconds(10));

  costs.forget_operators();

  EXPECT_FALSE(costs.pay(kTrace, milliseconds(10), nanoseconds(0)));
}

TEST(CompileCosts, AreThoseOfKnownOperatorsWhereAnEarlierProcessCompiledThem) {
  CompileCosts costs;
  const nanoseconds of_new_operators = costs.expect(kTrace);

  costs.note_compiled_before(kTrace);

  EXPECT_LT(costs.expect(kTrace), of_new_operators / 2);
}

TEST(CompileAllowance, IsAWindowOrTwoAtOnceAndThenAShareOfTheTime) {
  CompileAllowance allowance;

  EXPECT_TRUE(allowance.take(milliseconds(15), hours(5)));
  EXPECT_FALSE(allowance.take(milliseconds(15), hours(5)));
  EXPECT_FALSE(allowance.take(milliseconds(15), hours(5) + milliseconds(40)));
  EXPECT_TRUE(allowance.take(milliseconds(15), hours(5) + milliseconds(100)));
  EXPECT_FALSE(allowance.take(milliseconds(15), hours(5) + milliseconds(100)));
}

TEST(CompileAllowance, DoesNotPileUpWhileNothingIsCompiled) {
  CompileAllowance allowance;
  EXPECT_TRUE(allowance.take(milliseconds(1), hours(0)));

  EXPECT_FALSE(allowance.take(milliseconds(1000), hours(1)));
}

TEST_F(CompilePolicy, TracesWaitForMoreRecordingsWhereOthersNeverRan) {
  for (int i = 0; i < 100; ++i) count_ready_trace();
  const auto at_once = when_compiling_pays(kTrace, {.recordings = 1}, has_a_core);
  const auto after_many = when_compiling_pays(kTrace, {.recordings = 20}, has_a_core);
  for (int i = 0; i < 100; ++i) count_first_run();

  EXPECT_EQ(at_once, CompileWhen::kNot);
  EXPECT_NE(after_many, CompileWhen::kNot);
  EXPECT_NE(when_compiling_pays(kTrace, {.recordings = 1}, has_a_core), CompileWhen::kNot);
}

}  // namespace
}  // namespace torch_lazy
