// Printed kernels compute what the loop IR says, on every CPU target of this machine.

#include "codegen/printer.h"

#include <gtest/gtest.h>

#include <limits>

#include "kernel_check.h"
#include "loop_builder.h"

namespace torch_lazy::codegen {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Size slot(uint32_t index) {
  return Size::of_slot(index);
}
Size one() {
  return Size::constant(1);
}

// y = sqrt(|x * number + bias|), bias broadcast over rows.
LoopBuilder scaled_rows(Type type) {
  LoopBuilder builder(Axis::kKept, {slot(0), slot(1)}, {}, Size::constant(32));
  builder.kernel.size_slots = 2;
  const uint32_t x = builder.input(type);
  const uint32_t bias = builder.input(type);
  const uint32_t y = builder.output(type);
  ExprId value = builder.load(x, {slot(1), one()});
  ExprId shift = builder.load(bias, sizes({0, 1}));
  const bool narrow = type == Type::kBFloat16 || type == Type::kHalf;
  if (narrow) value = builder.cast(value, Type::kFloat);
  if (narrow) shift = builder.cast(shift, Type::kFloat);
  const ExprId scale = builder.number(0, builder.type_of(value));
  ExprId result =
      builder.op(Op::kSqrt, {builder.op(Op::kAbs, {builder.op(Op::kFma, {value, scale, shift})})});
  if (narrow) result = builder.cast(result, type);
  builder.store(y, {slot(1), one()}, result);
  return builder;
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

INSTANTIATE_TEST_SUITE_P(FloatingTypes, PointwiseOfType,
                         testing::Values(Type::kFloat, Type::kDouble, Type::kBFloat16, Type::kHalf),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST(PrintedPointwise, DoesNothingWithoutUnits) {
  const LoopBuilder builder = scaled_rows(Type::kFloat);
  Elements none(Type::kFloat, 0);
  expect_as_evaluated(builder.kernel, {{none, none, none}, {0, 7}, {1}});
  expect_as_evaluated(builder.kernel, {{none, none, none}, {7, 0}, {1}});
}

TEST_P(PointwiseOfType, StreamsResultsWhereMemoryIsAlignedAndWhereNot) {
  const Type type = GetParam();
  LoopBuilder builder = scaled_rows(type);
  builder.kernel.stores[0].streamed = true;
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

TEST(PrintedPointwise, ReadsAndWritesAnyStride) {
  LoopBuilder builder(Axis::kKept, {slot(0), slot(1)}, {}, Size::constant(64));
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

TEST(PrintedPointwise, ComputesInScalarsWithoutDimensions) {
  LoopBuilder builder(Axis::kKept, {}, {});
  const uint32_t x = builder.input(Type::kFloat);
  const uint32_t y = builder.output(Type::kFloat);
  builder.store(y, {}, builder.op(Op::kExp, {builder.load(x, {})}));
  expect_as_evaluated(builder.kernel,
                      {{elements_of(Type::kFloat, {0.5}), Elements(Type::kFloat, 1)}, {}, {}});
}

TEST(PrintedPointwise, UpdatesInPlace) {
  LoopBuilder builder(Axis::kKept, {slot(0)}, {}, Size::constant(64));
  builder.kernel.size_slots = 1;
  const uint32_t x = builder.output(Type::kFloat);
  const ExprId value = builder.load(x, {one()});
  builder.store(x, {one()}, builder.op(Op::kMul, {value, builder.number(0)}));
  expect_as_evaluated(builder.kernel, {{random_elements(Type::kFloat, 75)}, {75}, {1.5}});
}

TEST(PrintedPointwise, SelectsByIndicesAndTypes) {
  LoopBuilder builder(Axis::kKept, {slot(0), slot(1)}, {}, Size::constant(64));
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
  LoopBuilder builder(Axis::kKept, {slot(0), slot(1)}, {}, Size::constant(64));
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
  LoopBuilder builder(Axis::kKept, {slot(0)}, {}, Size::constant(64));
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
  LoopBuilder builder(Axis::kKept, {slot(0), slot(1)}, {}, Size::constant(64));
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
  LoopBuilder builder(Axis::kKept, {slot(0)}, {}, Size::constant(64));
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

// One reduction of a type, along rows (lanes along the reduced dimension) or columns.
struct ReductionCase {
  Op op;
  Type type;
  Axis axis;
};

class Reduction : public testing::TestWithParam<ReductionCase> {};

TEST_P(Reduction, OfAMatrix) {
  const auto [op, type, axis] = GetParam();
  LoopBuilder builder(axis, {slot(0)}, {slot(1)}, Size::constant(64));
  builder.kernel.size_slots = 2;
  const uint32_t x = builder.input(type);
  const bool along_rows = axis == Axis::kReduced;
  const ExprId value =
      along_rows ? builder.load(x, {slot(1), one()}) : builder.load(x, {one(), slot(0)});
  const ExprId result = builder.op(op, {value});
  const uint32_t y = builder.output(builder.type_of(result));
  builder.store(y, {one()}, result);
  const bool is_arg = op == Op::kReduceArgMax || op == Op::kReduceArgMin;
  for (int64_t kept : {1, 5, 70}) {
    for (int64_t reduced : {0, 1, 3, 17, 64, 150}) {
      if (is_arg && reduced == 0) continue;
      expect_as_evaluated(builder.kernel, {{random_elements(type, kept * reduced),
                                            Elements(builder.type_of(result), kept)},
                                           {kept, reduced},
                                           {}});
    }
  }
}

std::vector<ReductionCase> reduction_cases() {
  std::vector<ReductionCase> cases;
  for (Axis axis : {Axis::kKept, Axis::kReduced}) {
    for (Type type :
         {Type::kFloat, Type::kDouble, Type::kInt64, Type::kInt32, Type::kInt8, Type::kUInt8}) {
      for (Op op : {Op::kReduceSum, Op::kReduceProd, Op::kReduceMin, Op::kReduceMax,
                    Op::kReduceArgMax, Op::kReduceArgMin}) {
        cases.push_back({op, type, axis});
      }
    }
    cases.push_back({Op::kReduceAnd, Type::kBool, axis});
    cases.push_back({Op::kReduceOr, Type::kBool, axis});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, Reduction, testing::ValuesIn(reduction_cases()),
                         [](const auto& info) {
                           return std::string(name_of(info.param.op)) + "_" +
                                  name_of(info.param.type) +
                                  (info.param.axis == Axis::kKept ? "_columns" : "_rows");
                         });

TEST(PrintedReduction, PassesNanAndInfinityOn) {
  LoopBuilder builder(Axis::kReduced, {slot(0)}, {slot(1)});
  builder.kernel.size_slots = 2;
  const uint32_t x = builder.input(Type::kFloat);
  const uint32_t greatest = builder.output(Type::kFloat);
  const uint32_t where = builder.output(Type::kInt64);
  const ExprId value = builder.load(x, {slot(1), one()});
  builder.store(greatest, {one()}, builder.op(Op::kReduceMax, {value}));
  builder.store(where, {one()}, builder.op(Op::kReduceArgMax, {value}));
  std::vector<double> rows(4 * 20, -1);
  rows[5] = kNan;
  rows[18] = kNan;
  for (int i = 20; i < 40; ++i) rows[i] = -kInfinity;
  rows[40 + 19] = kInfinity;
  rows[60 + 17] = 3;
  rows[60 + 18] = 3;
  expect_as_evaluated(builder.kernel, {{elements_of(Type::kFloat, rows), Elements(Type::kFloat, 4),
                                        Elements(Type::kInt64, 4)},
                                       {4, 20},
                                       {}});
}

// Softmax along the reduced dimension: three passes, and an expression worth keeping.
ExprId add_softmax(LoopBuilder& builder, ExprId value) {
  const ExprId greatest = builder.op(Op::kReduceMax, {value});
  const ExprId exp = builder.op(Op::kExp, {builder.op(Op::kSub, {value, greatest})});
  return builder.op(Op::kDiv, {exp, builder.op(Op::kReduceSum, {exp})});
}

TEST(PrintedPasses, SoftmaxOfRows) {
  LoopBuilder builder(Axis::kReduced, {slot(0)}, {slot(1)});
  builder.kernel.size_slots = 2;
  const uint32_t x = builder.input(Type::kFloat);
  const uint32_t y = builder.output(Type::kFloat);
  builder.store(y, {slot(1), one()}, add_softmax(builder, builder.load(x, {slot(1), one()})));
  for (int64_t columns : {1, 15, 64, 101, 5000}) {
    expect_as_evaluated(builder.kernel, {{random_elements(Type::kFloat, 3 * columns),
                                          Elements(Type::kFloat, 3 * columns)},
                                         {3, columns},
                                         {}});
  }
}

TEST(PrintedPasses, SoftmaxOfColumns) {
  LoopBuilder builder(Axis::kKept, {slot(0), slot(1)}, {slot(2)}, Size::constant(64));
  builder.kernel.size_slots = 4;
  const uint32_t x = builder.input(Type::kFloat);
  const uint32_t y = builder.output(Type::kFloat);
  builder.store(y, {slot(3), one(), slot(1)},
                add_softmax(builder, builder.load(x, {slot(3), one(), slot(1)})));
  for (int64_t inner : {1, 20, 64, 150}) {
    expect_as_evaluated(builder.kernel, {{random_elements(Type::kFloat, 2 * 7 * inner),
                                          Elements(Type::kFloat, 2 * 7 * inner)},
                                         {2, inner, 7, 7 * inner},
                                         {}});
  }
}

TEST(PrintedPasses, SoftmaxInPlaceReadsBeforeItWrites) {
  LoopBuilder builder(Axis::kReduced, {slot(0)}, {slot(1)});
  builder.kernel.size_slots = 2;
  const uint32_t x = builder.output(Type::kFloat);
  builder.store(x, {slot(1), one()}, add_softmax(builder, builder.load(x, {slot(1), one()})));
  expect_as_evaluated(builder.kernel, {{random_elements(Type::kFloat, 3 * 50)}, {3, 50}, {}});
}

TEST(PrintedPasses, NormalizesOverTwoDimensionsAndStoresRowValues) {
  // As batch norm of NCHW: statistics of each channel over N and HW, weight per channel.
  for (Axis axis : {Axis::kReduced, Axis::kKept}) {
    const bool lanes_inside = axis == Axis::kReduced;
    LoopBuilder builder(axis, {slot(0)}, {slot(1), slot(2)}, Size::constant(64));
    builder.kernel.size_slots = 5;
    // The channels are the slow dimension, or the fast one where the lanes run along them.
    const std::vector<Size> element = lanes_inside ? std::vector<Size>{slot(2), slot(3), one()}
                                                   : std::vector<Size>{one(), slot(3), slot(0)};
    const uint32_t x = builder.input(Type::kBFloat16);
    const uint32_t weight = builder.input(Type::kFloat);
    const uint32_t y = builder.output(Type::kBFloat16);
    const uint32_t mean_out = builder.output(Type::kFloat);
    const ExprId value = builder.cast(builder.load(x, element), Type::kFloat);
    const ExprId scale = builder.load(weight, sizes({1, 0, 0}));
    const ExprId count = builder.number(0);
    const ExprId mean = builder.op(Op::kMul, {builder.op(Op::kReduceSum, {value}), count});
    const ExprId centered = builder.op(Op::kSub, {value, mean});
    const ExprId squares = builder.op(Op::kReduceSum, {builder.op(Op::kMul, {centered, centered})});
    const ExprId variance = builder.op(Op::kMul, {squares, count});
    const ExprId inverse =
        builder.op(Op::kRsqrt, {builder.op(Op::kAdd, {variance, builder.number(1)})});
    const ExprId normal = builder.op(Op::kMul, {builder.op(Op::kMul, {centered, inverse}), scale});
    builder.store(y, element, builder.cast(normal, Type::kBFloat16));
    builder.store(mean_out, {one()}, mean);
    const int64_t channels = 19, batch = 4, inner = 21;
    const int64_t all = channels * batch * inner;
    expect_as_evaluated(
        builder.kernel,
        {{random_elements(Type::kBFloat16, all), random_elements(Type::kFloat, channels, 2),
          Elements(Type::kBFloat16, all), Elements(Type::kFloat, channels)},
         {channels, batch, inner, channels * inner, 0},
         {1.0 / (batch * inner), 1e-5}});
  }
}

TEST(PrintedPasses, CrossEntropyGathersByTheTarget) {
  // -log_softmax(x)[target], 0 where the target is to be ignored.
  LoopBuilder builder(Axis::kReduced, {slot(0)}, {slot(1)});
  builder.kernel.size_slots = 2;
  const uint32_t x = builder.input(Type::kFloat);
  const uint32_t target = builder.input(Type::kInt64);
  const uint32_t loss = builder.output(Type::kFloat);
  const ExprId value = builder.load(x, {slot(1), one()});
  const ExprId wanted = builder.load(target, sizes({1, 0}));
  const ExprId counts = builder.op(Op::kNotEqual, {wanted, builder.integer(-100, Type::kInt64)});
  const ExprId greatest = builder.op(Op::kReduceMax, {value});
  const ExprId sum =
      builder.op(Op::kReduceSum, {builder.op(Op::kExp, {builder.op(Op::kSub, {value, greatest})})});
  const ExprId log_sum = builder.op(Op::kAdd, {builder.op(Op::kLog, {sum}), greatest});
  const ExprId at_target = builder.load(x, {slot(1), Size::constant(0)}, counts, {{wanted, one()}});
  const ExprId difference = builder.op(Op::kSub, {log_sum, at_target});
  builder.store(loss, {one()},
                builder.op(Op::kSelect, {counts, difference, builder.integer(0, Type::kFloat)}));
  expect_as_evaluated(builder.kernel,
                      {{random_elements(Type::kFloat, 4 * 33),
                        elements_of(Type::kInt64, {3, -100, 32, 0}), Elements(Type::kFloat, 4)},
                       {4, 33},
                       {}});
}

// A kernel of random expressions over [kept 0, kept 1] x [reduced]: loads with and without strides
// along each dimension, arithmetic, reductions of some and their use, in any order.
LoopBuilder random_kernel(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto one_of = [&](uint64_t count) { return random() % count; };
  LoopBuilder builder(one_of(2) == 0 ? Axis::kKept : Axis::kReduced, {slot(0), slot(1)}, {slot(2)},
                      Size::constant(48));
  builder.kernel.size_slots = 5;
  // Of [k0][r0][k1]: slot 3 is kept 1 * reduced, slot 1 the stride of the reduced dimension.
  const std::vector<Size> whole{slot(3), one(), slot(1)};
  const Size none = Size::constant(0);
  std::vector<ExprId> values;
  for (const std::vector<Size>& strides :
       {whole, std::vector<Size>{none, one(), none}, std::vector<Size>{none, none, one()}}) {
    values.push_back(builder.load(builder.input(Type::kFloat), strides));
  }
  values.push_back(builder.number(0));
  constexpr Op kBinary[] = {Op::kAdd, Op::kSub, Op::kMul, Op::kMin, Op::kMax};
  constexpr Op kUnary[] = {Op::kNeg, Op::kAbs, Op::kTanh, Op::kErf};
  constexpr Op kReductions[] = {Op::kReduceMax, Op::kReduceMin};
  for (int i = 0; i < 14; ++i) {
    const ExprId a = values[one_of(values.size())];
    const ExprId b = values[one_of(values.size())];
    switch (one_of(5)) {
      case 0:
        values.push_back(builder.op(kReductions[one_of(2)], {a}));
        break;
      case 1:
      case 2:
        // tanh keeps products of products small.
        values.push_back(builder.op(Op::kTanh, {builder.op(kBinary[one_of(5)], {a, b})}));
        break;
      case 3:
        values.push_back(builder.op(Op::kSelect, {builder.op(Op::kLess, {a, b}), b, a}));
        break;
      default:
        values.push_back(builder.op(kUnary[one_of(4)], {a}));
    }
  }
  for (size_t i = values.size() - 3; i < values.size(); ++i) {
    builder.store(builder.output(Type::kFloat), whole, values[i]);
  }
  return builder;
}

TEST(PrintedPasses, RandomKernelsAreAsEvaluated) {
  const int64_t rows = 3, columns = 37, reduced = 23;
  const int64_t all = rows * columns * reduced;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Elements result(Type::kFloat, all);
    expect_as_evaluated(random_kernel(seed).kernel,
                        {{random_elements(Type::kFloat, all, seed + 1),
                          random_elements(Type::kFloat, columns, seed + 2),
                          random_elements(Type::kFloat, reduced, seed + 3), result, result, result},
                         {rows, columns, reduced, columns * reduced, 0},
                         {0.75}},
                        1e-4);
    if (HasFailure()) return;
  }
}

TEST(PrintedReduction, OverChunksCountsFromTheStart) {
  LoopBuilder builder(Axis::kReduced, {slot(0)}, {slot(1)});
  builder.kernel.size_slots = 3;
  builder.kernel.reduced_total = slot(2);
  const uint32_t x = builder.input(Type::kFloat);
  const uint32_t sum = builder.output(Type::kFloat);
  const uint32_t where = builder.output(Type::kInt64);
  const ExprId value = builder.load(x, sizes({0, 1}));
  builder.store(sum, {one()}, builder.op(Op::kReduceSum, {value}));
  builder.store(where, {one()}, builder.op(Op::kReduceArgMin, {value}));
  expect_as_evaluated(builder.kernel, {{random_elements(Type::kFloat, 105),
                                        Elements(Type::kFloat, 4), Elements(Type::kInt64, 4)},
                                       {4, 30, 105},
                                       {}});
}

TEST(PrintedReduction, OverChunksOfColumns) {
  LoopBuilder builder(Axis::kKept, {slot(0), slot(1)}, {slot(2)}, Size::constant(64));
  builder.kernel.size_slots = 4;
  builder.kernel.reduced_total = slot(3);
  const uint32_t x = builder.input(Type::kFloat);
  const uint32_t sum = builder.output(Type::kFloat);
  const ExprId value = builder.load(x, {Size::constant(0), one(), slot(1)});
  builder.store(sum, {slot(1), one()}, builder.op(Op::kReduceSum, {value}));
  expect_as_evaluated(builder.kernel,
                      {{random_elements(Type::kFloat, 50 * 23), Elements(Type::kFloat, 3 * 23)},
                       {3, 23, 20, 50},
                       {}});
}

TEST(PrintedReduction, OfWhatDoesNotVaryCountsEveryElement) {
  for (Axis axis : {Axis::kReduced, Axis::kKept}) {
    LoopBuilder builder(axis, {slot(0)}, {slot(1), slot(2)}, Size::constant(64));
    builder.kernel.size_slots = 3;
    const uint32_t of_row = builder.input(Type::kFloat);
    const uint32_t of_outer = builder.input(Type::kFloat);
    const uint32_t y = builder.output(Type::kFloat);
    const uint32_t z = builder.output(Type::kFloat);
    builder.store(y, {one()}, builder.op(Op::kReduceSum, {builder.load(of_row, sizes({1, 0, 0}))}));
    builder.store(z, {one()},
                  builder.op(Op::kReduceSum, {builder.load(of_outer, sizes({0, 1, 0}))}));
    expect_as_evaluated(builder.kernel,
                        {{random_elements(Type::kFloat, 6), random_elements(Type::kFloat, 5),
                          Elements(Type::kFloat, 6), Elements(Type::kFloat, 6)},
                         {6, 5, 21},
                         {}});
  }
}

TEST(PrintedReduction, OfAMillionFloatsLosesLittle) {
  const int64_t count = 1 << 20;
  for (Axis axis : {Axis::kReduced, Axis::kKept}) {
    LoopBuilder builder(axis, {one()}, {slot(0)}, Size::constant(64));
    builder.kernel.size_slots = 1;
    const uint32_t x = builder.input(Type::kFloat);
    const uint32_t y = builder.output(Type::kFloat);
    builder.store(y, {one()}, builder.op(Op::kReduceSum, {builder.load(x, sizes({0, 1}))}));
    Elements elements(Type::kFloat, count);
    for (int64_t i = 0; i < count; ++i) elements.set(i, {.real = 0.1 + static_cast<double>(i % 7)});
    expect_as_evaluated(builder.kernel, {{elements, Elements(Type::kFloat, 1)}, {count}, {}}, 1e-6);
  }
}

}  // namespace
}  // namespace torch_lazy::codegen
