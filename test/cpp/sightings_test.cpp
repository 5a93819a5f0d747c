// Which structures of windows have been met, and which of their numbers changed.

#include "trace/sightings.h"

#include <gtest/gtest.h>

namespace torch_lazy {
namespace {

constexpr Tape::Hash kOne{1, 10}, kTwo{2, 20};

TEST(Sightings, TheFirstSightingHasNoHistory) {
  Sightings sightings;

  EXPECT_EQ(sightings.add(kOne, {7}).history, nullptr);
  EXPECT_EQ(sightings.add(kTwo, {7}).history, nullptr);
}

TEST(Sightings, TheSecondSightingKnowsBothRecordings) {
  Sightings sightings;
  sightings.add(kOne, {7, 8});

  const Sightings::Again again = sightings.add(kOne, {7, 9});

  ASSERT_NE(again.history, nullptr);
  EXPECT_EQ(again.history->recordings(), 2u);
  EXPECT_EQ(again.promoted, 1u);
  EXPECT_EQ(again.history->promotion({3, 5}), (Promotion{{5, 5}}));
}

TEST(Sightings, FirstSightingsOfOtherStructuresInBetweenChangeNothing) {
  Sightings sightings;
  sightings.add(kOne, {7});
  sightings.add(kTwo, {1, 2, 3});
  sightings.add(kOne, {7});

  const Sightings::Again again = sightings.add(kOne, {8});

  EXPECT_EQ(again.history->recordings(), 3u);
  EXPECT_EQ(again.promoted, 1u);
}

TEST(Sightings, WhatIsForgottenIsNewAgain) {
  Sightings sightings;
  sightings.add(kOne, {7});
  sightings.clear();

  EXPECT_EQ(sightings.add(kOne, {7}).history, nullptr);
}

}  // namespace
}  // namespace torch_lazy
