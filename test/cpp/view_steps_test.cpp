// How views step along the dimensions of dense tensors.

#include "passes/view_steps.h"

#include <gtest/gtest.h>

#include <vector>

namespace torch_lazy {
namespace {

using Integers = std::vector<int64_t>;
using Along = ViewSteps::Along;

const Integers kSizes{8, 6}, kStrides{6, 1};

Integers begin_of(const ViewSteps& steps) {
  return {steps.begin.begin(), steps.begin.end()};
}

std::vector<Along> along_of(const ViewSteps& steps) {
  return {steps.along.begin(), steps.along.end()};
}

TEST(ViewSteps, AreBeginAndStepsByDimension) {
  const auto steps = steps_of({{4, 5}, {12, 1}, 7}, kSizes, kStrides);

  ASSERT_TRUE(steps);
  EXPECT_EQ(begin_of(*steps), (Integers{1, 1}));
  EXPECT_EQ(along_of(*steps), (std::vector<Along>{{0, 2}, {1, 1}}));
}

TEST(ViewSteps, FollowPermutedDimensionsInMemory) {
  const auto steps = steps_of({{5, 4}, {1, 8}, 2}, Integers{6, 1, 8}, Integers{8, 48, 1});

  ASSERT_TRUE(steps);
  EXPECT_EQ(begin_of(*steps), (Integers{0, 0, 2}));
  EXPECT_EQ(along_of(*steps), (std::vector<Along>{{2, 1}, {0, 1}}));
}

TEST(ViewSteps, AreByNoneWhereADimensionIsBroadcastOrOfOneElement) {
  const auto steps = steps_of({{8, 3, 1}, {6, 0, 4}, 5}, kSizes, kStrides);

  ASSERT_TRUE(steps);
  EXPECT_EQ(begin_of(*steps), (Integers{0, 5}));
  EXPECT_EQ(along_of(*steps), (std::vector<Along>{{0, 1}, {0, 0}, {0, 0}}));
}

TEST(ViewSteps, MayOverlapAlongOneDimension) {
  const auto windows = steps_of({{6, 3, 6}, {6, 6, 1}, 0}, kSizes, kStrides);

  ASSERT_TRUE(windows);
  EXPECT_EQ(along_of(*windows), (std::vector<Along>{{0, 1}, {0, 1}, {1, 1}}));
  EXPECT_FALSE(steps_of({{6, 4, 6}, {6, 6, 1}, 0}, kSizes, kStrides));
}

TEST(ViewSteps, AreNoneOfViewsThatLeaveADimensionOrRunAcross) {
  EXPECT_FALSE(steps_of({{4, 6}, {6, 1}, 1}, kSizes, kStrides));   // on into the next row
  EXPECT_FALSE(steps_of({{6}, {7}, 0}, kSizes, kStrides));         // a diagonal
  EXPECT_FALSE(steps_of({{5, 6}, {12, 1}, 0}, kSizes, kStrides));  // beyond the end
  EXPECT_FALSE(steps_of({{0, 6}, {6, 1}, 0}, kSizes, kStrides));   // empty
  EXPECT_FALSE(steps_of({{8, 6}, {6, 1}, 0}, kSizes, Integers{12, 1}));
}

TEST(ViewSteps, OfABoxTellWhereItBegins) {
  const auto begin =
      begin_of_box({{3, 1, 2}, {12, 7, 1}, 18}, Integers{4, 3, 4}, Integers{12, 4, 1});

  ASSERT_TRUE(begin);
  EXPECT_EQ(Integers(begin->begin(), begin->end()), (Integers{1, 1, 2}));
  EXPECT_FALSE(begin_of_box({{4, 3}, {12, 1}, 0}, kSizes, kStrides));  // every second row
  EXPECT_FALSE(begin_of_box({{6, 8}, {1, 6}, 0}, kSizes, kStrides));   // transposed
  EXPECT_FALSE(begin_of_box({{6}, {1}, 0}, kSizes, kStrides));         // of fewer dimensions
}

}  // namespace
}  // namespace torch_lazy
