// Which kernels and sweeps compute two neighbouring vectors at once.

#include "codegen/choose_pairs.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "loop_builder.h"

namespace torch_lazy::codegen {
namespace {

constexpr int kPairLanes = 8;

// y[i, j] = op(x[i, j]) of 4 rows.
struct Rows {
  std::vector<int64_t> sizes;
  LoopBuilder builder{Axis::kParallel, {slot(0), slot(1)}, {}};

  Rows(Op op, int64_t columns, Type type = Type::kFloat) : sizes{4, columns} {
    builder.kernel.size_slots = 2;
    const uint32_t x = builder.input(type), y = builder.output(type);
    builder.store(y, {slot(1), one()}, builder.op(op, {builder.load(x, {slot(1), one()})}));
  }

  bool pairs(int lanes = kPairLanes) const { return goes_by_pairs(builder.kernel, sizes, lanes); }
};

TEST(ChoosePairs, ElementaryFunctionsAreComputedByTwo) {
  EXPECT_TRUE(Rows(Op::kExp, 100).pairs());
  EXPECT_FALSE(Rows(Op::kNeg, 100).pairs());
}

TEST(ChoosePairs, ShortRowsAreNot) {
  EXPECT_TRUE(Rows(Op::kExp, 8 * kPairLanes).pairs());
  EXPECT_FALSE(Rows(Op::kExp, 8 * kPairLanes - 1).pairs());
}

TEST(ChoosePairs, VectorsOfAWholeLineAreNot) {
  EXPECT_FALSE(Rows(Op::kExp, 1000).pairs(16));
}

TEST(ChoosePairs, WhatIsReadWithGapsIsNot) {
  Rows gaps(Op::kExp, 100);
  gaps.builder.kernel.exprs[0].access.strides.back() = Size::constant(2);
  EXPECT_FALSE(gaps.pairs());
}

TEST(ChoosePairs, FunctionsThatAreCallsAreNot) {
  EXPECT_FALSE(Rows(Op::kAtan, 100).pairs());
  EXPECT_FALSE(Rows(Op::kExp, 100, Type::kDouble).pairs());
}

TEST(ChoosePairs, WhatIsReadWhereAConditionHoldsIsNot) {
  Rows masked(Op::kExp, 100);
  masked.builder.kernel.exprs[0].predicate = 0;
  EXPECT_FALSE(masked.pairs());
}

TEST(ChoosePairs, NumbersOfARowAreReadAsWell) {
  Rows broadcast(Op::kExp, 100);
  broadcast.builder.kernel.exprs[0].access.strides.back() = Size::constant(0);
  EXPECT_TRUE(broadcast.pairs());
}

TEST(ChoosePairs, SweepsGainByTheirOwnFunctions) {
  const Rows rows(Op::kExp, 100);  // a load, then exp
  EXPECT_TRUE(gain_by_pairs(rows.builder.kernel, {0, 1}, kPairLanes));
  EXPECT_FALSE(gain_by_pairs(rows.builder.kernel, {0}, kPairLanes));
}

}  // namespace
}  // namespace torch_lazy::codegen
