#include "codegen/affine.h"

#include <gtest/gtest.h>

namespace torch_lazy::codegen {
namespace {

Affine affine(int64_t constant, std::initializer_list<int64_t> coefficients) {
  Affine result(coefficients.size());
  result.constant = constant;
  std::copy(coefficients.begin(), coefficients.end(), result.coefficients.begin());
  return result;
}

TEST(Affine, AddressIsTheSumOfIndicesTimesStrides) {
  const IndexMap map{affine(1, {0, 1}), affine(2, {3, 0})};
  const Layout layout{{4, 9}, {10, 1}, 100};

  EXPECT_EQ(address(map, layout, 2), affine(112, {3, 10}));
}

TEST(IndexAt, OfTheTensorItselfIsTheAxes) {
  EXPECT_EQ(index_at(affine(0, {4, 1}), {3, 4}, {4, 1}, {3, 4}),
            (IndexMap{affine(0, {1, 0}), affine(0, {0, 1})}));
}

TEST(IndexAt, OfATransposeExchangesTheAxes) {
  EXPECT_EQ(index_at(affine(0, {1, 4}), {3, 4}, {4, 1}, {4, 3}),
            (IndexMap{affine(0, {0, 1}), affine(0, {1, 0})}));
}

TEST(IndexAt, FollowsTheStridesOfTheTensor) {
  EXPECT_EQ(index_at(affine(0, {3, 1}), {3, 4}, {1, 3}, {4, 3}),
            (IndexMap{affine(0, {0, 1}), affine(0, {1, 0})}));
}

TEST(IndexAt, OfASliceBeginsWhereItDoes) {
  EXPECT_EQ(index_at(affine(5, {4, 1}), {3, 4}, {4, 1}, {2, 3}),
            (IndexMap{affine(1, {1, 0}), affine(1, {0, 1})}));
}

TEST(IndexAt, OfASliceWithStepsCountsInThem) {
  EXPECT_EQ(index_at(affine(1, {8, 2}), {4, 4}, {4, 1}, {2, 2}),
            (IndexMap{affine(0, {2, 0}), affine(1, {0, 2})}));
}

TEST(IndexAt, OfASplitDimensionCombinesItsParts) {
  EXPECT_EQ(index_at(affine(0, {4, 2, 1}), {3, 4}, {4, 1}, {3, 2, 2}),
            (IndexMap{affine(0, {1, 0, 0}), affine(0, {0, 2, 1})}));
}

TEST(IndexAt, OfADiagonalMovesInBothDimensions) {
  EXPECT_EQ(index_at(affine(0, {5}), {4, 4}, {4, 1}, {4}),
            (IndexMap{affine(0, {1}), affine(0, {1})}));
}

TEST(IndexAt, OfAReversedDimensionCountsDown) {
  EXPECT_EQ(index_at(affine(3, {4, -1}), {3, 4}, {4, 1}, {3, 4}),
            (IndexMap{affine(0, {1, 0}), affine(3, {0, -1})}));
}

TEST(IndexAt, IsZeroInDimensionsOfSizeOne) {
  EXPECT_EQ(index_at(affine(0, {1}), {1, 4, 1}, {4, 1, 7}, {4}),
            (IndexMap{affine(0, {0}), affine(0, {1}), affine(0, {0})}));
}

TEST(IndexAt, IgnoresAxesThatTheAddressDoesNotFollow) {
  EXPECT_EQ(index_at(affine(0, {0, 1}), {4}, {1}, {9, 4}), (IndexMap{affine(0, {0, 1})}));
}

TEST(IndexAt, FailsForAnAxisOverMergedDimensions) {
  EXPECT_FALSE(index_at(affine(0, {1}), {3, 4}, {4, 1}, {12}));
}

TEST(IndexAt, TakesAMergedAxisThatStaysInOneRow) {
  EXPECT_EQ(index_at(affine(4, {1}), {3, 4}, {4, 1}, {4}),
            (IndexMap{affine(1, {0}), affine(0, {1})}));
}

TEST(IndexAt, FailsWhereAnAxisRunsOverTheEndOfARow) {
  EXPECT_FALSE(index_at(affine(2, {1}), {3, 4}, {4, 1}, {4}));
}

TEST(IndexAt, FailsOutsideTheTensor) {
  EXPECT_FALSE(index_at(affine(0, {4, 1}), {3, 4}, {4, 1}, {4, 4}));
  EXPECT_FALSE(index_at(affine(-1, {4, 1}), {3, 4}, {4, 1}, {3, 4}));
}

}  // namespace
}  // namespace torch_lazy::codegen
