#include "runtime/free_ranges.h"

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

TEST_F(FreeRangesTest, DividesTheLargestAtAMultipleOfTheUnit) {
  ranges.add({at(0), 10 * kUnit});
  ranges.add({at(2048), kUnit});

  const FreeRanges::Range taken = ranges.take_from_largest(100, kUnit);

  EXPECT_EQ(taken.start, at(8 * kUnit));
  EXPECT_EQ(taken.bytes, 2 * kUnit);
  EXPECT_EQ(ranges.bytes(), 9 * kUnit);
}

TEST_F(FreeRangesTest, GivesTheLargestWholeWhereNoMoreThanAUnitWouldStay) {
  ranges.add({at(kUnit / 2), kUnit});

  const FreeRanges::Range taken = ranges.take_from_largest(kUnit - 8, kUnit);

  EXPECT_EQ(taken.start, at(kUnit / 2));
  EXPECT_EQ(taken.bytes, kUnit);
  EXPECT_EQ(ranges.take_from_largest(1, kUnit).bytes, 0);
}

}  // namespace
}  // namespace torch_lazy
