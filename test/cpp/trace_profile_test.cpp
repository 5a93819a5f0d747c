// Which structures of windows have been recorded, and which of their numbers changed.

#include "trace/trace_profile.h"

#include <gtest/gtest.h>

namespace torch_lazy {
namespace {

constexpr Tape::Hash kOne{1, 10}, kTwo{2, 20};

TEST(TraceProfile, TheFirstRecordingHasNoHistory) {
  TraceProfile profile;

  EXPECT_EQ(profile.add(kOne, {7}).history, nullptr);
  EXPECT_EQ(profile.add(kTwo, {7}).history, nullptr);
}

TEST(TraceProfile, TheSecondRecordingKnowsBoth) {
  TraceProfile profile;
  profile.add(kOne, {7, 8});

  const TraceProfile::Again again = profile.add(kOne, {7, 9});

  ASSERT_NE(again.history, nullptr);
  EXPECT_EQ(again.dynamic, 1u);
  EXPECT_EQ(again.history->dynamic_scalars({3, 5}), (DynamicScalars{{5, 5}}));
}

TEST(TraceProfile, FirstRecordingsOfOtherStructuresInBetweenChangeNothing) {
  TraceProfile profile;
  profile.add(kOne, {7});
  profile.add(kTwo, {1, 2, 3});
  profile.add(kOne, {7});

  const TraceProfile::Again again = profile.add(kOne, {8});

  EXPECT_EQ(again.dynamic, 1u);
}

TEST(TraceProfile, WhatIsForgottenIsNewAgain) {
  TraceProfile profile;
  profile.add(kOne, {7});
  profile.clear();

  EXPECT_EQ(profile.add(kOne, {7}).history, nullptr);
}

}  // namespace
}  // namespace torch_lazy
