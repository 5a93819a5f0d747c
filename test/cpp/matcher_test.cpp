// Which windows are followed, and which trace one of them is expected to be, from how it begins and
// how the last ones ended.

#include "trace/matcher.h"

#include <gtest/gtest.h>

#include "follow_window.h"
#include "tape_builder.h"

namespace torch_lazy {
namespace {

using tests::follow;
using tests::Handle;
using tests::TapeBuilder;

// exp, then these operators one after the other.
TapeBuilder exp_and(const std::vector<const char*>& names) {
  TapeBuilder window;
  Handle x = window.call("aten::exp", "", {window.input(at::ones({2, 3}))})[0];
  for (const char* name : names) x = window.call(name, "", {x})[0];
  return window;
}

std::shared_ptr<CompiledTrace> trace_of(const TapeBuilder& window) {
  return std::make_shared<CompiledTrace>(window.tape.prefix(window.tape.size()), DynamicScalars(),
                                         std::vector<bool>(window.tape.storages),
                                         TraceConditions());
}

class MatcherTest : public ::testing::Test {
 protected:
  MatcherTest() {
    traces.insert(sine, std::nullopt);
    traces.insert(cosine, std::nullopt);
  }

  // What is expected when so many operations of the window are recorded.
  std::shared_ptr<CompiledTrace> expected(const TapeBuilder& window, size_t operations) {
    matcher.start(&traces);
    return matcher.expected(follow(matcher, window.tape, operations), WindowHistory());
  }
  void run_as(CompiledTrace& trace) {
    matcher.start(&traces);
    follow(matcher, trace.tape(), trace.tape().size());
    matcher.note_run(trace);
  }
  // As a recorder does with it. Returns after how many operations it was flushed or failed: one,
  // where it was not followed.
  size_t operations_of(const TapeBuilder& window, bool flushed_where_told = true) {
    matcher.start(&traces);
    const Tape recorded = follow(matcher, window.tape, window.tape.size(), flushed_where_told);
    const bool followed = recorded.size() > 1;
    if (followed && recorded.is_open()) matcher.note_guard_failure();
    if (followed && !recorded.is_open()) matcher.note_run(*matcher.ended(recorded));
    if (!followed) matcher.note_eager_end(window.tape);
    return recorded.size();
  }
  // Returns whether it was followed from its first operation on.
  bool record(const TapeBuilder& window) { return operations_of(window) > 1; }

  const TapeBuilder sine_window = exp_and({"aten::sin", "aten::abs"});
  const TapeBuilder cosine_window = exp_and({"aten::cos", "aten::abs"});
  const TapeBuilder unknown_window = exp_and({"aten::tan", "aten::abs"});
  const std::shared_ptr<CompiledTrace> sine = trace_of(sine_window);
  const std::shared_ptr<CompiledTrace> cosine = trace_of(cosine_window);
  KnownTraces traces;
  Matcher matcher;
};

TEST_F(MatcherTest, ExpectsNothingBeforeAWindowThatBeganSoHasRun) {
  EXPECT_EQ(expected(sine_window, 1), nullptr);
}

TEST_F(MatcherTest, ExpectsWhatTheLastWindowThatBeganSoWas) {
  run_as(*sine);

  EXPECT_EQ(expected(sine_window, 1), sine);
}

TEST_F(MatcherTest, ExpectsNothingWhereTheWindowHasLeftWhatItWas) {
  run_as(*sine);

  EXPECT_EQ(expected(cosine_window, 2), nullptr);
}

TEST_F(MatcherTest, ExpectsNothingWhereTheLastWindowWasAnotherThanTheOneBeforeIt) {
  run_as(*sine);
  run_as(*cosine);

  EXPECT_EQ(expected(cosine_window, 1), nullptr);
}

TEST_F(MatcherTest, ExpectsNothingAfterAWindowThatWasAnotherAndRanByOperation) {
  run_as(*sine);
  expected(cosine_window, 3);
  matcher.note_wrong_guess();

  EXPECT_EQ(expected(sine_window, 1), nullptr);
}

TEST_F(MatcherTest, ExpectsATraceAgainWhenTwoWindowsWereAlike) {
  run_as(*sine);
  run_as(*cosine);
  run_as(*cosine);

  EXPECT_EQ(expected(cosine_window, 1), cosine);
}

TEST_F(MatcherTest, FollowsNoMoreWindowsThatBeginAsManyThatFailedAGuard) {
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(record(unknown_window)) << i;

  EXPECT_FALSE(record(unknown_window));
}

TEST_F(MatcherTest, FollowsThemWhereSomeRanInBetween) {
  for (int i = 0; i < 40; ++i) EXPECT_TRUE(record(i % 4 == 0 ? sine_window : unknown_window)) << i;
}

TEST_F(MatcherTest, FollowsThemAgainWhenTheyAreKnownOnesAgain) {
  for (int i = 0; i < 100; ++i) record(unknown_window);

  int passed_by = 0;
  while (!record(sine_window)) ++passed_by;

  EXPECT_EQ(passed_by, 3);
}

TEST_F(MatcherTest, DoesNotFollowThemForAKnownOneNowAndThen) {
  for (int i = 0; i < 100; ++i) record(unknown_window);

  for (int i = 0; i < 100; ++i)
    EXPECT_FALSE(record(i % 10 == 0 ? sine_window : unknown_window)) << i;
}

// Windows that begin as a trace that ends there, and go on from its end.
class MatcherEndTest : public MatcherTest {
 protected:
  void know(const TapeBuilder& window) { traces.insert(trace_of(window), std::nullopt); }
  static TapeBuilder begun_and(const std::vector<const char*>& names,
                               size_t beginning = kLeastOfAWindow) {
    std::vector<const char*> all(beginning - 1, "aten::neg");  // one more stands before them
    all.insert(all.end(), names.begin(), names.end());
    return exp_and(all);
  }

  static constexpr size_t kEnd = kLeastOfAWindow, kFailed = kEnd + 1;
  const TapeBuilder beginning = begun_and({});
  const TapeBuilder known = begun_and({"aten::sin", "aten::abs"});
  const TapeBuilder unknown = begun_and({"aten::tan", "aten::abs"});
};

TEST_F(MatcherEndTest, FlushesAtAnEndBehindWhichManyFailedAGuard) {
  know(beginning);
  know(known);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(operations_of(unknown), kFailed) << i;

  EXPECT_EQ(operations_of(unknown), kEnd);
  EXPECT_EQ(operations_of(known), kEnd);
}

TEST_F(MatcherEndTest, FlushesAtAnEndBehindWhichNothingIsKnown) {
  know(beginning);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(operations_of(unknown), kFailed) << i;

  EXPECT_EQ(operations_of(unknown), kEnd);
}

TEST_F(MatcherEndTest, FlushesAtNoneBehindWhichSomeRan) {
  know(beginning);
  know(known);
  for (int i = 0; i < 40; ++i) EXPECT_GT(operations_of(i % 4 == 0 ? known : unknown), kEnd) << i;
}

TEST_F(MatcherEndTest, FlushesAtNoneBehindWhichSomeCameToAnotherThatTheyPassed) {
  const TapeBuilder longer = begun_and({"aten::sin", "aten::abs", "aten::log"});
  know(beginning);
  know(known);
  know(longer);
  for (int i = 0; i < 40; ++i) EXPECT_GT(operations_of(i % 4 == 0 ? longer : unknown), kEnd) << i;
}

TEST_F(MatcherEndTest, CountsWindowsThatEndThereForNeither) {
  know(beginning);
  know(known);
  for (int i = 0; i < 40; ++i) operations_of(i % 4 == 0 ? beginning : unknown);

  EXPECT_EQ(operations_of(known), kEnd);
}

TEST_F(MatcherEndTest, GoesOnAgainWhereThatTurnsOutWell) {
  know(beginning);
  know(known);
  for (int i = 0; i < 30; ++i) operations_of(unknown);
  int flushed = 0;
  while (operations_of(known) == kEnd) ++flushed;

  EXPECT_LE(flushed, 64);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(operations_of(known), known.tape.size()) << i;
}

TEST_F(MatcherEndTest, SeldomGoesOnWhereThatDoesNot) {
  know(beginning);
  for (int i = 0; i < 8; ++i) operations_of(unknown);
  int failed = 0;
  for (int i = 0; i < 640; ++i) failed += int(operations_of(unknown) == kFailed);

  EXPECT_GT(failed, 0);
  EXPECT_LE(failed, 10);
}

TEST_F(MatcherEndTest, FlushesAtNoneBehindFewOperations) {
  know(begun_and({}, kEnd - 1));
  const TapeBuilder window = begun_and({"aten::tan"}, kEnd - 1);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(operations_of(window), kEnd) << i;

  EXPECT_EQ(operations_of(window), 1u);  // such windows are not followed
}

TEST_F(MatcherEndTest, FollowsNoWindowsThatFailBehindAnEndThatWasPassedNevertheless) {
  know(beginning);
  for (int i = 0; i < 8; ++i) operations_of(unknown);
  const auto pass = [&] { return operations_of(unknown, /*flushed_where_told=*/false); };
  for (int i = 0; i < 8; ++i) EXPECT_EQ(pass(), kFailed) << i;

  EXPECT_EQ(pass(), 1u);
}

}  // namespace
}  // namespace torch_lazy
