// Printed pointwise kernels compute what the loop IR says, on every CPU target of this machine.

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "codegen/printer.h"
#include "kernel_check.h"
#include "loop_builder.h"

namespace torch_lazy::codegen {
namespace {

// y = sqrt(|x * number + bias|), bias broadcast over rows.
LoopBuilder scaled_rows(Type type) {
  LoopBuilder builder(Axis::kParallel, {slot(0), slot(1)}, {}, Size::constant(32));
  builder.kernel.size_slots = 2;
  const uint32_t x = builder.input(type);
  const uint32_t bias = builder.input(type);
  const uint32_t y = builder.output(type);
  ExprId value = builder.load(x, {slot(1), one()});
  ExprId shift = builder.load(bias, sizes({0, 1}));
  const bool narrow = is_low(type);
  if (narrow) value = builder.cast(value, Type::kFloat);
  if (narrow) shift = builder.cast(shift, Type::kFloat);
  const ExprId scale = builder.number(0, builder.type_of(value));
  ExprId result =
      builder.op(Op::kSqrt, {builder.op(Op::kAbs, {builder.op(Op::kFma, {value, scale, shift})})});
  if (narrow) result = builder.cast(result, type);
  builder.store(y, {slot(1), one()}, result);
  return builder;
}

int count_of(const std::string& word, const std::string& text) {
  int count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

class PointwiseOfType : public testing::TestWithParam<Type> {};

TEST_P(PointwiseOfType, BroadcastsOverRowsOfAnyLength) {
  const Type type = GetParam();
  const LoopBuilder builder = scaled_rows(type);
  for (int64_t columns : {1, 3, 16, 31, 32, 33, 100}) {
    expect_as_evaluated(builder.kernel,
                        {{random_elements(type, 5 * columns), random_elements(type, columns, 2),
                          Elements(type, 5 * columns)},
                         {5, columns},
                         {0.75}});
  }
}

TEST_P(PointwiseOfType, GoesByPairsThroughRowsOfAnyLength) {
  const Type type = GetParam();
  LoopBuilder builder = scaled_rows(type);
  builder.kernel.pairs = true;
  for (int64_t columns : {1, 8, 15, 31, 32, 33, 100}) {
    expect_as_evaluated(builder.kernel,
                        {{random_elements(type, 5 * columns), random_elements(type, columns, 2),
                          Elements(type, 5 * columns)},
                         {5, columns},
                         {0.75}});
  }
}

INSTANTIATE_TEST_SUITE_P(FloatingTypes, PointwiseOfType,
                         testing::Values(Type::kFloat, Type::kDouble, Type::kBFloat16, Type::kHalf,
                                         Type::kFloat8E4M3FN, Type::kFloat8E5M2),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST(PrintedPointwise, GoesByPairsAndFetchesEachLineOnce) {
  LoopBuilder builder = scaled_rows(Type::kFloat);
  builder.kernel.pairs = true;
  builder.kernel.fetch_ahead_bytes = 1024;
  const std::string source = print_kernel(builder.kernel, {Target::Kind::kCpu, 8}).source;
  const std::string pairs = source.substr(source.find("for (; i + 16 <= last; i += 16)"));
  const std::string body = pairs.substr(0, pairs.find("for (; i + 8 <= last"));
  EXPECT_EQ(count_of("lazy_sqrt", body), 2);
  EXPECT_EQ(count_of("lazy_prefetch(", body), 2);  // x and bias
  EXPECT_EQ(count_of("lazy_prefetch_to_write(", body), 1);
}

TEST(PrintedPointwise, DoesNothingWithoutUnits) {
  const LoopBuilder builder = scaled_rows(Type::kFloat);
  Elements none(Type::kFloat, 0);
  expect_as_evaluated(builder.kernel, {{none, none, none}, {0, 7}, {1}});
  expect_as_evaluated(builder.kernel, {{none, none, none}, {7, 0}, {1}});
}

TEST_P(PointwiseOfType, StoresNontemporallyWhereMemoryIsAlignedAndWhereNot) {
  const Type type = GetParam();
  LoopBuilder builder = scaled_rows(type);
  builder.kernel.stores[0].nontemporal = true;
  for (int64_t columns : {31, 64, 128}) {
    for (bool aligned : {false, true}) {
      expect_as_evaluated(builder.kernel,
                          {{random_elements(type, 5 * columns), random_elements(type, columns, 2),
                            Elements(type, 5 * columns)},
                           {5, columns},
                           {0.75},
                           aligned});
    }
  }
}

TEST_P(PointwiseOfType, FetchesRowsAheadEvenBeyondTheirEnd) {
  const Type type = GetParam();
  LoopBuilder builder = scaled_rows(type);
  builder.kernel.fetch_ahead_bytes = 1024;
  for (int64_t columns : {1, 31, 64}) {
    expect_as_evaluated(builder.kernel,
                        {{random_elements(type, 5 * columns), random_elements(type, columns, 2),
                          Elements(type, 5 * columns)},
                         {5, columns},
                         {0.75}});
  }
}

TEST(PrintedPointwise, ReadsAndWritesAnyStride) {
  LoopBuilder builder(Axis::kParallel, {slot(0), slot(1)}, {}, Size::constant(64));
  builder.kernel.size_slots = 4;
  const uint32_t x = builder.input(Type::kInt16);
  const uint32_t y = builder.output(Type::kInt16);
  // A transposed read, and a write with gaps.
  const ExprId value = builder.load(x, {one(), slot(0)});
  builder.store(y, {slot(2), slot(3)}, builder.op(Op::kMul, {value, value}));
  expect_as_evaluated(builder.kernel,
                      {{random_elements(Type::kInt16, 7 * 90), Elements(Type::kInt16, 7 * 300)},
                       {7, 90, 270, 3},
                       {}});
}

TEST(PrintedPointwise, ReadsTransposedMatricesAndRowsOfThem) {
  // y[p, r, c] = x[p, c, r] + z[p, r, c] + bias[r], in squares and parts of them.
  LoopBuilder builder(Axis::kParallel, {slot(0), slot(1), slot(2)}, {}, Size::constant(64));
  builder.kernel.size_slots = 4;
  const uint32_t x = builder.input(Type::kBFloat16);
  const uint32_t z = builder.input(Type::kFloat);
  const uint32_t bias = builder.input(Type::kFloat);
  const uint32_t y = builder.output(Type::kFloat);
  const ExprId transposed = builder.cast(builder.load(x, {slot(3), one(), slot(1)}), Type::kFloat);
  const ExprId sum = builder.op(Op::kAdd, {transposed, builder.load(z, {slot(3), slot(2), one()})});
  const ExprId of_row = builder.load(bias, {Size::constant(0), one(), Size::constant(0)});
  builder.store(y, {slot(3), slot(2), one()}, builder.op(Op::kAdd, {sum, of_row}));
  for (const auto& [rows, columns] : {std::pair{32, 64}, std::pair{70, 41}, std::pair{8, 33}}) {
    const int64_t matrix = int64_t{rows} * columns;
    expect_as_evaluated(
        builder.kernel,
        {{random_elements(Type::kBFloat16, 2 * matrix), random_elements(Type::kFloat, 2 * matrix),
          random_elements(Type::kFloat, rows), Elements(Type::kFloat, 2 * matrix)},
         {2, rows, columns, matrix},
         {}});
  }
}

TEST(PrintedPointwise, ComputesInScalarsWithoutDimensions) {
  LoopBuilder builder(Axis::kParallel, {}, {});
  const uint32_t x = builder.input(Type::kFloat);
  const uint32_t y = builder.output(Type::kFloat);
  builder.store(y, {}, builder.op(Op::kExp, {builder.load(x, {})}));
  expect_as_evaluated(builder.kernel,
                      {{elements_of(Type::kFloat, {0.5}), Elements(Type::kFloat, 1)}, {}, {}});
}

TEST(PrintedPointwise, UpdatesInPlace) {
  LoopBuilder builder(Axis::kParallel, {slot(0)}, {}, Size::constant(64));
  builder.kernel.size_slots = 1;
  const uint32_t x = builder.output(Type::kFloat);
  const ExprId value = builder.load(x, {one()});
  builder.store(x, {one()}, builder.op(Op::kMul, {value, builder.number(0)}));
  expect_as_evaluated(builder.kernel, {{random_elements(Type::kFloat, 75)}, {75}, {1.5}});
}

TEST(PrintedPointwise, SelectsByIndicesAndTypes) {
  LoopBuilder builder(Axis::kParallel, {slot(0), slot(1)}, {}, Size::constant(64));
  builder.kernel.size_slots = 2;
  const uint32_t x = builder.input(Type::kInt64);
  const uint32_t y = builder.output(Type::kInt64);
  const uint32_t above = builder.output(Type::kBool);
  const ExprId on_or_below = builder.op(Op::kLessEqual, {builder.index(1), builder.index(0)});
  const ExprId value = builder.load(x, {slot(1), one()});
  const ExprId zero = builder.integer(0, Type::kInt64);
  builder.store(y, {slot(1), one()}, builder.op(Op::kSelect, {on_or_below, value, zero}));
  builder.store(above, {slot(1), one()}, builder.op(Op::kNot, {on_or_below}));
  expect_as_evaluated(builder.kernel,
                      {{random_elements(Type::kInt64, 9 * 21), Elements(Type::kInt64, 9 * 21),
                        Elements(Type::kBool, 9 * 21)},
                       {9, 21},
                       {}});
}

TEST(PrintedPointwise, DrawsTheElementsOfARandomStream) {
  // From below to above 2^32, in vectors and, of a row by its number alone, in scalars.
  LoopBuilder builder(Axis::kParallel, {slot(0), slot(1)}, {}, Size::constant(64));
  builder.kernel.size_slots = 2;
  const uint32_t keys = builder.input(Type::kInt64);
  const uint32_t of_elements = builder.output(Type::kFloat);
  const uint32_t of_rows = builder.output(Type::kFloat);
  const ExprId key = builder.load(keys, sizes({1, 0}));
  const ExprId start = builder.integer((int64_t{1} << 32) - 20, Type::kInt64);
  const ExprId position = builder.op(Op::kAdd, {start, builder.index(1)});
  builder.store(of_elements, {slot(1), one()}, builder.op(Op::kPhiloxUniform, {position, key}));
  builder.store(of_rows, sizes({1, 0}), builder.op(Op::kPhiloxUniform, {builder.index(0), key}));
  expect_as_evaluated(builder.kernel, {{elements_of(Type::kInt64, {0, -1, 0x1p52}),
                                        Elements(Type::kFloat, 3 * 37), Elements(Type::kFloat, 3)},
                                       {3, 37},
                                       {}});
}

TEST(PrintedPointwise, TouchesMemoryOnlyWhereThePredicateHolds) {
  // A padded row: y[i] = x[i - 2] inside of x, else 0; stored at even places.
  LoopBuilder builder(Axis::kParallel, {slot(0)}, {}, Size::constant(64));
  builder.kernel.size_slots = 2;
  const uint32_t x = builder.input(Type::kFloat);
  const uint32_t y = builder.output(Type::kFloat);
  const ExprId from = builder.op(Op::kSub, {builder.index(0), builder.integer(2, Type::kInt64)});
  const ExprId after = builder.op(Op::kGreaterEqual, {from, builder.integer(0, Type::kInt64)});
  ExprId length = builder.integer(0, Type::kInt64);
  builder.kernel.exprs[length].value = slot(1);
  const ExprId before = builder.op(Op::kLess, {from, length});
  const ExprId inside = builder.op(Op::kAnd, {after, before});
  const ExprId value = builder.load(x, sizes({0}), inside, {{from, one()}});
  const ExprId odd = builder.op(Op::kAnd, {builder.index(0), builder.integer(1, Type::kInt64)});
  builder.store(y, {one()}, value, builder.op(Op::kEqual, {odd, builder.integer(0, Type::kInt64)}));
  expect_as_evaluated(
      builder.kernel,
      {{random_elements(Type::kFloat, 40), random_elements(Type::kFloat, 47, 2)}, {47, 40}, {}});
}

TEST(PrintedPointwise, GathersRowsAndElements) {
  // y[i, j] = table[index[i], j] + table[0, column[j]]
  LoopBuilder builder(Axis::kParallel, {slot(0), slot(1)}, {}, Size::constant(64));
  builder.kernel.size_slots = 2;
  const uint32_t table = builder.input(Type::kFloat);
  const uint32_t index = builder.input(Type::kInt64);
  const uint32_t column = builder.input(Type::kInt64);
  const uint32_t y = builder.output(Type::kFloat);
  const ExprId row = builder.load(index, sizes({1, 0}));
  const ExprId from_row = builder.load(table, sizes({0, 1}), kNoPredicate, {{row, slot(1)}});
  const ExprId at = builder.load(column, sizes({0, 1}));
  const ExprId from_column = builder.load(table, sizes({0, 0}), kNoPredicate, {{at, one()}});
  builder.store(y, {slot(1), one()}, builder.op(Op::kAdd, {from_row, from_column}));
  std::vector<double> columns;
  for (int i = 0; i < 37; ++i) columns.push_back((i * 5) % 37);
  expect_as_evaluated(builder.kernel,
                      {{random_elements(Type::kFloat, 8 * 37), elements_of(Type::kInt64, {7, 0, 3}),
                        elements_of(Type::kInt64, columns), Elements(Type::kFloat, 3 * 37)},
                       {3, 37},
                       {}});
}

TEST(PrintedPointwise, ScattersByIndices) {
  LoopBuilder builder(Axis::kParallel, {slot(0)}, {}, Size::constant(64));
  builder.kernel.size_slots = 1;
  const uint32_t x = builder.input(Type::kDouble);
  const uint32_t index = builder.input(Type::kInt64);
  const uint32_t y = builder.output(Type::kDouble);
  const ExprId to = builder.load(index, {one()});
  builder.store(y, sizes({0}), builder.load(x, {one()}), kNoPredicate, {{to, Size::constant(2)}});
  std::vector<double> places;
  for (int i = 0; i < 29; ++i) places.push_back((i * 3) % 29);
  expect_as_evaluated(builder.kernel,
                      {{random_elements(Type::kDouble, 29), elements_of(Type::kInt64, places),
                        Elements(Type::kDouble, 60)},
                       {29},
                       {}});
}

}  // namespace
}  // namespace torch_lazy::codegen
