// Printed reductions compute what the loop IR says, on every CPU target of this machine.

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "kernel_check.h"
#include "loop_builder.h"

namespace torch_lazy::codegen {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// One reduction of a type, along rows (lanes along the reduction dimension) or columns.
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
  const bool along_rows = axis == Axis::kReduction;
  const ExprId value =
      along_rows ? builder.load(x, {slot(1), one()}) : builder.load(x, {one(), slot(0)});
  const ExprId result = builder.op(op, {value});
  const uint32_t y = builder.output(builder.type_of(result));
  builder.store(y, {one()}, result);
  const bool is_arg = op == Op::kReduceArgMax || op == Op::kReduceArgMin;
  for (int64_t parallel : {1, 5, 70}) {
    for (int64_t reduced : {0, 1, 3, 17, 64, 150}) {
      if (is_arg && reduced == 0) continue;
      expect_as_evaluated(builder.kernel, {{random_elements(type, parallel * reduced),
                                            Elements(builder.type_of(result), parallel)},
                                           {parallel, reduced},
                                           {}});
    }
  }
}

std::vector<ReductionCase> reduction_cases() {
  std::vector<ReductionCase> cases;
  for (Axis axis : {Axis::kParallel, Axis::kReduction}) {
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
                                  (info.param.axis == Axis::kParallel ? "_columns" : "_rows");
                         });

TEST(PrintedReduction, PassesNanAndInfinityOn) {
  LoopBuilder builder(Axis::kReduction, {slot(0)}, {slot(1)});
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

TEST(PrintedReduction, OverChunksCountsFromTheStart) {
  LoopBuilder builder(Axis::kReduction, {slot(0)}, {slot(1)});
  builder.kernel.size_slots = 3;
  builder.kernel.reduction_total = slot(2);
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
  LoopBuilder builder(Axis::kParallel, {slot(0), slot(1)}, {slot(2)}, Size::constant(64));
  builder.kernel.size_slots = 4;
  builder.kernel.reduction_total = slot(3);
  const uint32_t x = builder.input(Type::kFloat);
  const uint32_t sum = builder.output(Type::kFloat);
  const ExprId value = builder.load(x, {Size::constant(0), one(), slot(1)});
  builder.store(sum, {slot(1), one()}, builder.op(Op::kReduceSum, {value}));
  expect_as_evaluated(builder.kernel,
                      {{random_elements(Type::kFloat, 50 * 23), Elements(Type::kFloat, 3 * 23)},
                       {3, 23, 20, 50},
                       {}});
}

// Tiles are up to 128 columns wide, and a block has several.
TEST(PrintedReduction, OfColumnsThatAreNoWholeTile) {
  LoopBuilder builder(Axis::kParallel, {slot(0)}, {slot(1)}, Size::constant(256));
  builder.kernel.size_slots = 2;
  const uint32_t x = builder.input(Type::kFloat);
  const uint32_t y = builder.output(Type::kFloat);
  const ExprId value = builder.load(x, {one(), slot(0)});
  const ExprId centered = builder.op(Op::kSub, {value, builder.op(Op::kReduceMax, {value})});
  builder.store(y, {one()}, builder.op(Op::kReduceSum, {centered}));
  for (int64_t columns : {3, 16, 100, 128, 131, 250, 400})
    expect_as_evaluated(builder.kernel, {{random_elements(Type::kFloat, columns * 70),
                                          Elements(Type::kFloat, columns)},
                                         {columns, 70},
                                         {}});
}

TEST(PrintedReduction, OfWhatDoesNotVaryCountsEveryElement) {
  for (Axis axis : {Axis::kReduction, Axis::kParallel}) {
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

TEST(PrintedReduction, IsAddedToWhatItsRowHolds) {
  LoopBuilder builder(Axis::kReduction, {slot(0)}, {slot(1)});
  builder.kernel.size_slots = 2;
  const uint32_t x = builder.input(Type::kFloat);
  const uint32_t y = builder.output(Type::kFloat);
  const ExprId before = builder.load(y, sizes({1, 0}));
  const ExprId sum = builder.op(Op::kReduceSum, {builder.load(x, {slot(1), one()})});
  builder.store(y, {one()}, builder.op(Op::kAdd, {before, sum}));

  expect_as_evaluated(
      builder.kernel,
      {{random_elements(Type::kFloat, 70), random_elements(Type::kFloat, 7)}, {7, 10}, {}});
}

TEST(PrintedReduction, OfAMillionFloatsLosesLittle) {
  const int64_t count = 1 << 20;
  for (Axis axis : {Axis::kReduction, Axis::kParallel}) {
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
