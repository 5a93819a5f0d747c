#include "memory/idle_bytes.h"

#include <gtest/gtest.h>

namespace torch_lazy {
namespace {

constexpr int64_t kStart = 5 * IdleBytes::kPeriod;

TEST(IdleBytes, AreTheFewestThatThereWereInAPeriod) {
  IdleBytes idle;
  idle.taken_at(kStart, 100);
  idle.now_are(30);
  idle.now_are(70);

  EXPECT_EQ(idle.taken_at(kStart + IdleBytes::kPeriod, 100), 30);
}

TEST(IdleBytes, AreTakenOnceAPeriod) {
  IdleBytes idle;
  idle.taken_at(kStart, 100);

  EXPECT_EQ(idle.taken_at(kStart + IdleBytes::kPeriod - 1, 100), 0);
  EXPECT_EQ(idle.taken_at(kStart + IdleBytes::kPeriod, 100), 100);
  EXPECT_EQ(idle.taken_at(kStart + IdleBytes::kPeriod + 1, 0), 0);
}

TEST(IdleBytes, AreNoneWhileAllIsNeededAgainAndAgain) {
  IdleBytes idle;
  for (int64_t period = 0; period < 5; ++period) {
    EXPECT_EQ(idle.taken_at(kStart + period * IdleBytes::kPeriod, 100), 0);
    idle.now_are(0);
  }
}

TEST(IdleBytes, WhatWasKeptAfterAPeriodBeganIsOfTheNext) {
  IdleBytes idle;
  idle.taken_at(kStart, 0);

  EXPECT_EQ(idle.taken_at(kStart + IdleBytes::kPeriod, 100), 0);
  EXPECT_EQ(idle.taken_at(kStart + 2 * IdleBytes::kPeriod, 100), 100);
}

}  // namespace
}  // namespace torch_lazy
