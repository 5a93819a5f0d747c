// What one process leaves for the next of the traces that it ran.

#include "runtime/remembered_traces.h"

#include <gtest/gtest.h>

namespace torch_lazy {
namespace {

using std::chrono::milliseconds;

constexpr Tape::Hash kFirst{1, 2}, kSecond{3, 4}, kThird{5, 6};

RememberedTrace ran(int64_t runs) {
  return {.runs = runs, .recorded = milliseconds(1)};
}

TEST(RememberedTraces, ComeBackFromTheBytesThatTheyAreKeptAs) {
  const RememberedTracesInOrder traces = {
      {kFirst, {.runs = 12, .recorded = milliseconds(3), .dynamic_scalars = {{7, 7}, {9, 7}}}},
      {kSecond, ran(8)}};

  const std::string bytes = to_bytes(traces);

  EXPECT_EQ(remembered_from_bytes(bytes), traces);
}

TEST(RememberedTraces, AreNoneOfBytesThatDoNotEndWithATrace) {
  const std::string bytes = to_bytes({{kFirst, {.runs = 12, .dynamic_scalars = {{7, 7}, {9, 7}}}}});

  for (const size_t missing : {1u, 8u, 16u, 24u})
    EXPECT_TRUE(remembered_from_bytes(bytes.substr(missing)).empty()) << missing;
  EXPECT_TRUE(remembered_from_bytes(bytes + bytes.substr(0, 16)).empty());
}

TEST(RememberedTraces, ThatRanAreBeforeThoseThatDidNotByTheirRuns) {
  const auto after = remembered_after({{kFirst, ran(8)}, {kSecond, ran(9)}}, {},
                                      {{kThird, ran(100)}}, Until::kTheEnd);

  const RememberedTracesInOrder expected = {
      {kSecond, ran(9)}, {kFirst, ran(8)}, {kThird, ran(100)}};
  EXPECT_EQ(after, expected);
}

TEST(RememberedTraces, ThatRanLessOftenThanBeforeHaveHalfTheRunsOfThenHoweverOftenTheyAreKept) {
  const RememberedTraces now = {{kFirst, ran(8)}, {kSecond, ran(80)}};
  const RememberedTraces recalled = {{kFirst, ran(100)}, {kSecond, ran(100)}};

  const auto once =
      remembered_after(now, recalled, {{kFirst, ran(100)}, {kSecond, ran(100)}}, Until::kTheEnd);
  const auto twice = remembered_after(now, recalled, once, Until::kTheEnd);

  const RememberedTracesInOrder expected = {{kSecond, ran(80)}, {kFirst, ran(50)}};
  EXPECT_EQ(once, expected);
  EXPECT_EQ(twice, expected);
}

TEST(RememberedTraces, OfAProcessThatGoesOnHaveAllRunsOfThen) {
  const auto after =
      remembered_after({{kFirst, ran(8)}}, {{kFirst, ran(100)}}, {{kFirst, ran(100)}}, Until::kNow);

  EXPECT_EQ(after, (RememberedTracesInOrder{{kFirst, ran(100)}}));
}

TEST(RememberedTraces, ThatAProcessBesideThisOneRanMoreOftenHaveItsRuns) {
  const auto after = remembered_after({{kFirst, ran(8)}}, {}, {{kFirst, ran(20)}}, Until::kTheEnd);

  EXPECT_EQ(after, (RememberedTracesInOrder{{kFirst, ran(20)}}));
}

TEST(RememberedTraces, ThatThisProcessRecalledAndAnotherRanMoreOftenMeanwhileHaveItsRuns) {
  const auto after = remembered_after({{kFirst, ran(8)}}, {{kFirst, ran(100)}},
                                      {{kFirst, ran(1000)}}, Until::kTheEnd);

  EXPECT_EQ(after, (RememberedTracesInOrder{{kFirst, ran(1000)}}));
}

TEST(RememberedTraces, ThatNoProcessRunsAnyMoreAreForgotten) {
  RememberedTracesInOrder kept = {{kFirst, ran(100)}};
  int processes = 0;

  for (; !kept.empty() && processes < 100; ++processes)
    kept = remembered_after({{kFirst, ran(0)}}, {kept.begin(), kept.end()}, kept, Until::kTheEnd);

  EXPECT_EQ(processes, 4);
}

TEST(RememberedTraces, HaveTheDynamicScalarsThatWereLearntLast) {
  RememberedTrace learnt = ran(8);
  learnt.dynamic_scalars = {{7, 7}};

  const auto after =
      remembered_after({{kFirst, learnt}}, {{kFirst, ran(8)}}, {{kFirst, ran(8)}}, Until::kTheEnd);

  EXPECT_EQ(after.front().second.dynamic_scalars, learnt.dynamic_scalars);
}

TEST(RememberedTraces, AreBoundedAndThoseUsedLastStay) {
  RememberedTracesInOrder before;
  for (uint64_t i = 0; i < 100'000; ++i) before.push_back({{i + 10, 0}, ran(8)});

  const auto after = remembered_after({{kFirst, ran(8)}}, {}, before, Until::kTheEnd);

  ASSERT_LT(after.size(), 10'000u);
  ASSERT_GT(after.size(), 1'000u);
  EXPECT_EQ(after[0].first, kFirst);
  EXPECT_EQ(after[1].first, before[0].first);
}

}  // namespace
}  // namespace torch_lazy
