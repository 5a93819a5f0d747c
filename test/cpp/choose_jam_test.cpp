// Which steps of a work item are jammed, and how many.

#include "codegen/choose_jam.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "loop_builder.h"

namespace torch_lazy::codegen {
namespace {

constexpr int kJamLanes = 16;

// A product of matrices of `rows` x `inner` and `inner` x `columns` elements, with lanes along the
// columns.
struct JamProduct {
  std::vector<int64_t> sizes;
  LoopBuilder builder{Axis::kParallel, {slot(0), slot(2)}, {slot(1)}};

  JamProduct(int64_t rows, int64_t inner, int64_t columns, Type type = Type::kFloat)
      : sizes{rows, inner, columns} {
    builder.kernel.size_slots = 3;
    const uint32_t a = builder.input(type), b = builder.input(type);
    const ExprId left = builder.load(a, {slot(1), Size::constant(0), one()});
    const ExprId right = builder.load(b, {Size::constant(0), one(), slot(2)});
    const ExprId sum = builder.op(Op::kReduceSum, {builder.op(Op::kMul, {left, right})});
    builder.store(builder.output(type), {slot(2), one()}, sum);
  }

  Jam jam() const { return choose_jam(builder.kernel, sizes, kJamLanes); }
};

TEST(ChooseJam, RowsOfAProductAreComputedTogether) {
  EXPECT_EQ(JamProduct(64, 64, 64).jam(), (Jam{.dimension = 0, .steps = 8}));
}

TEST(ChooseJam, FewRowsAreAllComputedTogether) {
  EXPECT_EQ(JamProduct(3, 64, 64).jam(), (Jam{.dimension = 0, .steps = 3}));
  EXPECT_EQ(JamProduct(1, 64, 64).jam(), Jam{});
}

TEST(ChooseJam, TheStepsLeaveFewForNothingAtTheEnd) {
  EXPECT_EQ(JamProduct(20, 64, 64).jam().steps, 7);
}

TEST(ChooseJam, WideTypesHaveRegistersForFewerSteps) {
  EXPECT_EQ(JamProduct(64, 64, 64, Type::kDouble).jam().steps, 6);
}

TEST(ChooseJam, OfTwoOperandsTheLargerIsSharedAndReadOnce) {
  LoopBuilder builder(Axis::kReduction, {Size::constant(4), Size::constant(1000)},
                      {Size::constant(100)});
  const uint32_t x = builder.input(Type::kFloat), weight = builder.input(Type::kFloat);
  const ExprId of_x = builder.load(x, {Size::constant(100), Size::constant(0), one()});
  const ExprId of_weight = builder.load(weight, {Size::constant(0), Size::constant(100), one()});
  builder.store(builder.output(Type::kFloat), {Size::constant(1000), one()},
                builder.op(Op::kReduceSum, {builder.op(Op::kMul, {of_x, of_weight})}));

  EXPECT_EQ(choose_jam(builder.kernel, {}, kJamLanes), (Jam{.dimension = 0, .steps = 4}));
}

TEST(ChooseJam, ThreadsAreLeftWorkItems) {
  const JamProduct product(8, 64, 64);

  EXPECT_EQ(choose_jam(product.builder.kernel, product.sizes, kJamLanes, /*most_steps=*/2).steps,
            2);
}

TEST(ChooseJam, OfAGatherNoneAreJammed) {
  LoopBuilder builder(Axis::kParallel, {Size::constant(64), Size::constant(64)}, {});
  const uint32_t x = builder.input(Type::kFloat), y = builder.input(Type::kFloat);
  const uint32_t rows = builder.input(Type::kInt64);
  const ExprId row = builder.load(rows, {one(), Size::constant(0)});
  const ExprId gathered =
      builder.load(x, {Size::constant(0), one()}, kNoPredicate, {{row, Size::constant(64)}});
  const ExprId transposed = builder.load(y, {one(), Size::constant(64)});
  builder.store(builder.output(Type::kFloat), {Size::constant(64), one()},
                builder.op(Op::kAdd, {gathered, transposed}));

  EXPECT_EQ(choose_jam(builder.kernel, {}, kJamLanes), Jam{});
}

TEST(ChooseJam, OfFewColumnsAStepHasOneVector) {
  EXPECT_EQ(JamProduct(64, 64, 16).jam(), (Jam{.dimension = 0, .steps = 8, .vectors = 1}));
}

TEST(ChooseJam, OfRowsThatShareNothingNoneAreJammed) {
  LoopBuilder builder(Axis::kReduction, {Size::constant(64)}, {Size::constant(100)});
  const uint32_t x = builder.input(Type::kFloat);
  const ExprId value = builder.load(x, {Size::constant(100), one()});
  builder.store(builder.output(Type::kFloat), {one()}, builder.op(Op::kReduceSum, {value}));

  EXPECT_EQ(choose_jam(builder.kernel, {}, kJamLanes), Jam{});
}

TEST(ChooseJam, OfASumOfWhatIsKnownBeforeItsLoopNoneAreJammed) {
  LoopBuilder builder(Axis::kParallel, {Size::constant(4), Size::constant(64)},
                      {Size::constant(100)});
  const uint32_t x = builder.input(Type::kFloat);
  const ExprId value = builder.load(x, {Size::constant(64), one(), Size::constant(0)});
  builder.store(builder.output(Type::kFloat), {Size::constant(64), one()},
                builder.op(Op::kReduceSum, {value}));

  EXPECT_EQ(choose_jam(builder.kernel, {}, kJamLanes), Jam{});
}

TEST(ChooseJam, OfATransposedMatrixAsManyAsLanesMakeASquare) {
  LoopBuilder builder(Axis::kParallel, {Size::constant(100), Size::constant(70)}, {});
  const uint32_t x = builder.input(Type::kFloat);
  builder.store(builder.output(Type::kFloat), {Size::constant(70), one()},
                builder.load(x, {one(), Size::constant(100)}));

  EXPECT_EQ(choose_jam(builder.kernel, {}, kJamLanes), (Jam{.dimension = 0, .steps = kJamLanes}));
}

}  // namespace
}  // namespace torch_lazy::codegen
