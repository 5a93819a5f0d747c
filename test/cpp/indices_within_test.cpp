#include "ops/indices_within.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace torch_lazy {
namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

// Whether seven indices are within, all of which are 1 but the one at a place.
bool within(int64_t index, int64_t place, at::ScalarType dtype, const IndexRange& range) {
  at::Tensor indices = at::full({7}, 1, at::TensorOptions(dtype));
  indices[place].fill_(index);
  return indices_within(indices, range);
}

TEST(IndicesWithin, FindsTheOneThatIsOutsideWhereverItIs) {
  for (const at::ScalarType dtype : {at::kLong, at::kInt})
    for (int64_t place = 0; place < 7; ++place) {
      for (const int64_t index : {0, 4}) EXPECT_TRUE(within(index, place, dtype, {0, 5, {}}));
      for (const int64_t index : {-1, 5}) EXPECT_FALSE(within(index, place, dtype, {0, 5, {}}));
    }
}

TEST(IndicesWithin, TakesNegativeOnesFromTheLowestOn) {
  EXPECT_TRUE(within(-5, 2, at::kLong, {-5, 5, {}}));
  EXPECT_TRUE(within(-5, 2, at::kInt, {-5, 5, {}}));
  EXPECT_FALSE(within(-6, 2, at::kLong, {-5, 5, {}}));
  EXPECT_FALSE(within(-6, 2, at::kInt, {-5, 5, {}}));
}

TEST(IndicesWithin, IsRightForTheLargestNumbers) {
  for (const int64_t index : {kLeast, kLeast + 1, kMost - 1, kMost})
    for (const int64_t place : {0, 6}) {
      EXPECT_FALSE(within(index, place, at::kLong, {0, 5, {}})) << index;
      EXPECT_FALSE(within(index, place, at::kLong, {-5, 5, {}})) << index;
    }
}

TEST(IndicesWithin, PassesOverTheIgnoredOneAlone) {
  for (const int64_t ignored : {int64_t(-100), int64_t(255), kLeast, kMost})
    for (const int64_t place : {0, 6}) {
      EXPECT_TRUE(within(ignored, place, at::kLong, {0, 5, ignored})) << ignored;
      EXPECT_TRUE(within(3, place, at::kLong, {0, 5, ignored})) << ignored;
      EXPECT_FALSE(within(-99, place, at::kLong, {0, 5, ignored})) << ignored;
    }
}

TEST(IndicesWithin, HasNothingWithinAnEmptyRange) {
  EXPECT_FALSE(within(1, 0, at::kLong, {0, 0, {}}));
  EXPECT_TRUE(indices_within(at::full({0}, 1, at::TensorOptions(at::kLong)), {0, 0, {}}));
}

}  // namespace
}  // namespace torch_lazy
