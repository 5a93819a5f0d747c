#include "runtime/idle_cores.h"

#include <gtest/gtest.h>

namespace torch_lazy {
namespace {

using std::chrono::milliseconds;

TEST(IdleCores, AScriptOnOneOfTwoCoresLeavesOne) {
  EXPECT_TRUE(had_idle_core(2, milliseconds(190), milliseconds(200)));
}

TEST(IdleCores, ATeamOnAllCoresLeavesNoneThoughItWaitsALittle) {
  EXPECT_FALSE(had_idle_core(2, milliseconds(60), milliseconds(200)));
  EXPECT_FALSE(had_idle_core(64, milliseconds(300), milliseconds(200)));
}

TEST(IdleCores, OneCoreIsNeverLeftThoughTheScriptSleeps) {
  EXPECT_FALSE(had_idle_core(1, milliseconds(200), milliseconds(200)));
}

ProcessorQuota quota(double cores, milliseconds used, const char* group = "/a") {
  return {cores, used, group};
}

TEST(IdleCores, ALimitLeavesOneWhereTwoAreAllowedAndOneIsUsed) {
  EXPECT_TRUE(quotas_left_a_core({quota(2, milliseconds(0))}, {quota(2, milliseconds(200))},
                                 milliseconds(0), milliseconds(200)));
  EXPECT_FALSE(quotas_left_a_core({quota(2, milliseconds(0))}, {quota(2, milliseconds(380))},
                                  milliseconds(0), milliseconds(200)));
}

TEST(IdleCores, WhatCompilesTakeOfALimitIsTheirs) {
  EXPECT_TRUE(quotas_left_a_core({quota(2, milliseconds(0))}, {quota(2, milliseconds(380))},
                                 milliseconds(180), milliseconds(200)));
}

TEST(IdleCores, ALimitOfOneLeavesNoneThoughTheScriptSleeps) {
  EXPECT_FALSE(quotas_left_a_core({quota(1, milliseconds(0))}, {quota(1, milliseconds(0))},
                                  milliseconds(0), milliseconds(200)));
}

TEST(IdleCores, EachOfTwoLimitsHasToLeaveOne) {
  const std::vector<ProcessorQuota> before = {quota(4, milliseconds(0)),
                                              quota(2, milliseconds(0), "/")};
  const std::vector<ProcessorQuota> now = {quota(4, milliseconds(390)),
                                           quota(2, milliseconds(390), "/")};

  EXPECT_FALSE(quotas_left_a_core(before, now, milliseconds(0), milliseconds(200)));
  EXPECT_TRUE(quotas_left_a_core({before[0]}, {now[0]}, milliseconds(0), milliseconds(200)));
  EXPECT_TRUE(quotas_left_a_core({}, {}, milliseconds(0), milliseconds(200)));
  EXPECT_FALSE(quotas_left_a_core({}, now, milliseconds(0), milliseconds(200)));
}

constexpr const char* kProcStat =
    "cpu  66 33 97 60 5 0 3 2 0 0\n"
    "cpu0 31 17 47 20 1 0 4 1 0 0\n"
    "cpu1 35 16 50 30 2 0 1 1 0 0\n"
    "cpu10 35 16 50 10 2 0 1 1 0 0\n"
    "intr 29426048 0 0 0\n";

TEST(IdleTime, IsTheSumOfThoseOfTheGivenCoresAndIncludesWaitsForTheDisk) {
  EXPECT_EQ(idle_time(kProcStat, {0}), milliseconds(210));
  EXPECT_EQ(idle_time(kProcStat, {1, 10}), milliseconds(440));
}

TEST(IdleTime, IsNotKnownOfACoreThatIsNotListed) {
  EXPECT_EQ(idle_time(kProcStat, {0, 2}), std::nullopt);
}

TEST(IdleTime, IsNotKnownWhereNothingIsCounted) {
  EXPECT_EQ(idle_time("cpu  0 0 0 0 0\ncpu0 0 0 0 0 0\n", {0}), std::nullopt);
  EXPECT_EQ(idle_time("", {0}), std::nullopt);
}

}  // namespace
}  // namespace torch_lazy
