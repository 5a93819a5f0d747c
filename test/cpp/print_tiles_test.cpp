// Interleaved elements, moved by whole vectors and sorted in registers, on every CPU target of this
// machine.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernel_check.h"
#include "loop_builder.h"

namespace torch_lazy::codegen {
namespace {

constexpr Type kTypes[] = {Type::kFloat,    Type::kDouble, Type::kInt64,        Type::kInt32,
                           Type::kInt16,    Type::kInt8,   Type::kUInt8,        Type::kBool,
                           Type::kBFloat16, Type::kHalf,   Type::kFloat8E4M3FN, Type::kFloat8E5M2};

class Tiles : public testing::TestWithParam<Type> {};

std::string name_of_tile_type(const testing::TestParamInfo<Type>& info) {
  return name_of(info.param);
}

INSTANTIATE_TEST_SUITE_P(All, Tiles, testing::ValuesIn(kTypes), name_of_tile_type);

// y[i][r] = x[i][r] for r < count, where a row of either has that many elements.
Kernel copy_of_rows(Type type, int64_t count, int64_t row_of_x, int64_t row_of_y) {
  LoopBuilder builder(Axis::kParallel, {slot(0)}, sizes({count}), Size::constant(32));
  builder.kernel.size_slots = 1;
  const ExprId x = builder.load(builder.input(type), sizes({row_of_x, 1}));
  builder.store(builder.output(type), sizes({row_of_y, 1}), x);
  return builder.kernel;
}

TEST_P(Tiles, AreWhatWasReadOrWrittenElementByElement) {
  const Type type = GetParam();
  for (int64_t count : {2, 3, 4, 5, 6, 7, 8}) {
    for (int64_t rows : {1, 16, 83}) {
      const Kernel kernel = copy_of_rows(type, count, count, count);
      expect_as_evaluated(
          kernel,
          {{random_elements(type, rows * count), Elements(type, rows * count)}, {rows}, {}});
    }
  }
}

TEST_P(Tiles, WithGapsLeaveAloneWhatLiesBetween) {
  const Type type = GetParam();
  const int64_t rows = 35;
  for (int64_t row_of_x : {4, 5}) {
    // Memory ends with the last element: kernel_check.h guards what is behind it.
    const Elements x = random_elements(type, (rows - 1) * row_of_x + 3);
    const Elements y = random_elements(type, (rows - 1) * 6 + 3, 2);
    expect_as_evaluated(copy_of_rows(type, 3, row_of_x, 6), {{x, y}, {rows}, {}});
  }
}

TEST_P(Tiles, AreNotNeededForASingleElementOfEachRow) {
  const Type type = GetParam();
  LoopBuilder builder(Axis::kParallel, {slot(0)}, {}, Size::constant(32));
  builder.kernel.size_slots = 1;
  builder.store(builder.output(type), {one()}, builder.load(builder.input(type), sizes({5})));
  const int64_t rows = 43;
  expect_as_evaluated(builder.kernel,
                      {{random_elements(type, 5 * rows - 4), Elements(type, rows)}, {rows}, {}});
}

TEST(PrintedTiles, AreReadByLanesAlongAReductionToo) {
  LoopBuilder builder(Axis::kReduction, {slot(0)}, {slot(1)});
  builder.kernel.size_slots = 2;
  const ExprId x = builder.load(builder.input(Type::kFloat), {one(), Size::constant(3)});
  builder.store(builder.output(Type::kFloat), {one()}, builder.op(Op::kReduceSum, {x}));
  expect_as_evaluated(
      builder.kernel,
      {{random_elements(Type::kFloat, 3 * 70), Elements(Type::kFloat, 3)}, {3, 70}, {}});
}

TEST(PrintedTiles, RunOverSeveralDimensionsOfSteps) {
  // y[i][a][b] = x[i][a][b] * u[i][b] * v[a]
  LoopBuilder builder(Axis::kParallel, {slot(0), slot(1)}, sizes({2, 3}), Size::constant(64));
  builder.kernel.size_slots = 4;
  const ExprId x = builder.load(builder.input(Type::kFloat),
                                {slot(2), Size::constant(6), Size::constant(3), one()});
  const ExprId u = builder.load(builder.input(Type::kFloat),
                                {slot(3), Size::constant(3), Size::constant(0), one()});
  const ExprId v = builder.load(builder.input(Type::kFloat), sizes({0, 0, 1, 0}));
  const ExprId product = builder.op(Op::kMul, {builder.op(Op::kMul, {x, u}), v});
  builder.store(builder.output(Type::kFloat),
                {slot(2), Size::constant(6), Size::constant(3), one()}, product);
  const int64_t outer = 2, rows = 21;
  expect_as_evaluated(builder.kernel, {{random_elements(Type::kFloat, outer * rows * 6),
                                        random_elements(Type::kFloat, outer * rows * 3, 2),
                                        random_elements(Type::kFloat, 2, 3),
                                        Elements(Type::kFloat, outer * rows * 6)},
                                       {outer, rows, rows * 6, rows * 3},
                                       {}});
}

// Softmax of rows of five, in place: sweeps, values kept from one to the next, a store that waits.
TEST(PrintedTiles, AreKeptFromSweepToSweep) {
  LoopBuilder builder(Axis::kParallel, {slot(0)}, sizes({5}), Size::constant(64));
  builder.kernel.size_slots = 1;
  const uint32_t x = builder.output(Type::kFloat);
  const ExprId value = builder.load(x, sizes({5, 1}));
  const ExprId greatest = builder.op(Op::kReduceMax, {value});
  const ExprId exponential = builder.op(Op::kExp, {builder.op(Op::kSub, {value, greatest})});
  const ExprId sum = builder.op(Op::kReduceSum, {exponential});
  builder.store(x, sizes({5, 1}), builder.op(Op::kDiv, {exponential, sum}));
  expect_as_evaluated(builder.kernel, {{random_elements(Type::kFloat, 5 * 53)}, {53}, {}});
}

// The step's index, and the first of equal values.
TEST(PrintedTiles, KnowTheNumberOfTheirStep) {
  LoopBuilder builder(Axis::kParallel, {slot(0)}, sizes({4}), Size::constant(64));
  builder.kernel.size_slots = 1;
  const ExprId value = builder.load(builder.input(Type::kInt32), sizes({4, 1}));
  builder.store(builder.output(Type::kInt64), {one()}, builder.op(Op::kReduceArgMax, {value}));
  builder.store(builder.output(Type::kInt64), sizes({4, 1}), builder.index(1));
  expect_as_evaluated(builder.kernel, {{random_elements(Type::kInt32, 4 * 39),
                                        Elements(Type::kInt64, 39), Elements(Type::kInt64, 4 * 39)},
                                       {39},
                                       {}});
}

}  // namespace
}  // namespace torch_lazy::codegen
