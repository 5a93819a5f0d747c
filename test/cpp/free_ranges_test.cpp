#include "memory/free_ranges.h"

#include <gtest/gtest.h>

#include <array>

namespace torch_lazy {
namespace {

constexpr size_t kUnit = 64;

class FreeRangesTest : public testing::Test {
 protected:
  // The addresses of a block that is aligned to the unit: ranges of it are never read or written.
  char* at(size_t offset) { return block_.data() + offset; }

  FreeRanges ranges;

 private:
  alignas(kUnit) std::array<char, 4096> block_{};
};

TEST_F(FreeRangesTest, GivesTheStartOfTheLeastThatFits) {
  ranges.add({at(0), 500});
  ranges.add({at(1000), 300});
  ranges.add({at(2000), 400});

  EXPECT_EQ(ranges.take(250), at(1000));
  EXPECT_EQ(ranges.take(50), at(1250));
  EXPECT_EQ(ranges.take(450), at(0));
  EXPECT_EQ(ranges.bytes(), 450);
}

TEST_F(FreeRangesTest, GivesTheFirstOfEqualOnes) {
  ranges.add({at(1000), 100});
  ranges.add({at(0), 100});

  EXPECT_EQ(ranges.take(100), at(0));
}

TEST_F(FreeRangesTest, HasNothingForMoreThanTheLargest) {
  ranges.add({at(0), 500});
  ranges.add({at(1000), 300});

  EXPECT_EQ(ranges.take(501), nullptr);
  EXPECT_EQ(ranges.bytes(), 800);
}

TEST_F(FreeRangesTest, JoinsWhatIsAddedWithItsNeighbours) {
  ranges.add({at(0), 100});
  ranges.add({at(200), 100});
  EXPECT_EQ(ranges.take(300), nullptr);

  ranges.add({at(100), 100});

  EXPECT_EQ(ranges.take(300), at(0));
  EXPECT_EQ(ranges.bytes(), 0);
}

TEST_F(FreeRangesTest, JoinsWithTheOneBeforeOrBehindAlone) {
  ranges.add({at(0), 100});
  ranges.add({at(100), 100});
  ranges.add({at(2000), 100});
  ranges.add({at(1900), 100});

  EXPECT_EQ(ranges.take(200), at(0));
  EXPECT_EQ(ranges.take(200), at(1900));
}

TEST_F(FreeRangesTest, GivesTheLargestOfAtMostSoManyBytes) {
  ranges.add({at(0), 500});
  ranges.add({at(1000), 300});
  ranges.add({at(2000), 400});

  const FreeRanges::Range taken = ranges.take_at_most(450, kUnit);

  EXPECT_EQ(taken.start, at(2000));
  EXPECT_EQ(taken.bytes, 400);
}

TEST_F(FreeRangesTest, GivesTheEndOfTheLargestWhereAllAreLarger) {
  ranges.add({at(0), 10 * kUnit});
  ranges.add({at(2048), 4 * kUnit});

  const FreeRanges::Range taken = ranges.take_at_most(2 * kUnit + 10, kUnit);

  EXPECT_EQ(taken.start, at(8 * kUnit));
  EXPECT_EQ(taken.bytes, 2 * kUnit);
  EXPECT_EQ(ranges.take(8 * kUnit), at(0));
}

TEST_F(FreeRangesTest, GivesNoMoreThanIsWantedForAWholeUnit) {
  ranges.add({at(0), 10 * kUnit});

  EXPECT_EQ(ranges.take_at_most(kUnit - 1, kUnit).bytes, 0);
  EXPECT_EQ(ranges.bytes(), 10 * kUnit);
}

TEST_F(FreeRangesTest, GivesAll) {
  ranges.add({at(0), 100});
  ranges.add({at(1000), 300});

  EXPECT_EQ(ranges.take_all().size(), 2);

  EXPECT_EQ(ranges.bytes(), 0);
  EXPECT_EQ(ranges.take(1), nullptr);
}

TEST_F(FreeRangesTest, TheFewestBytesThatWereFreeInAPeriodWereNotNeeded) {
  ranges.add({at(0), 100});
  ranges.begin_period();
  ranges.take(70);
  ranges.add({at(1000), 40});

  EXPECT_EQ(ranges.begin_period(), 30);
}

TEST_F(FreeRangesTest, WhatIsNeededAgainAndAgainIsNeededInEveryPeriod) {
  ranges.add({at(0), 100});
  for (int period = 0; period < 5; ++period) {
    EXPECT_EQ(ranges.begin_period(), 0);
    ranges.add({ranges.take(100), 100});
  }
}

TEST_F(FreeRangesTest, WhatWasAddedInAPeriodWaitsForTheNext) {
  ranges.begin_period();
  ranges.add({at(0), 100});

  EXPECT_EQ(ranges.begin_period(), 0);
  EXPECT_EQ(ranges.begin_period(), 100);
}

}  // namespace
}  // namespace torch_lazy
