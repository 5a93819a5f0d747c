// Printed kernels of several sweeps over the reduction dimensions compute what the loop IR says, on
// every CPU target of this machine.

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "codegen/printer.h"
#include "kernel_check.h"
#include "loop_builder.h"

namespace torch_lazy::codegen {
namespace {

// Softmax along the reduction dimension: three sweeps, and an expression worth spilling.
ExprId add_softmax(LoopBuilder& builder, ExprId value) {
  const ExprId greatest = builder.op(Op::kReduceMax, {value});
  const ExprId exp = builder.op(Op::kExp, {builder.op(Op::kSub, {value, greatest})});
  return builder.op(Op::kDiv, {exp, builder.op(Op::kReduceSum, {exp})});
}

TEST(PrintedSweeps, SoftmaxOfRows) {
  LoopBuilder builder(Axis::kReduction, {slot(0)}, {slot(1)});
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

TEST(PrintedSweeps, SoftmaxOfColumns) {
  LoopBuilder builder(Axis::kParallel, {slot(0), slot(1)}, {slot(2)}, Size::constant(64));
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

TEST(PrintedSweeps, FetchColumnsAheadEvenBeyondTheirEnd) {
  LoopBuilder builder(Axis::kParallel, {slot(0)}, {slot(1)}, Size::constant(64));
  builder.kernel.size_slots = 2;
  builder.kernel.fetch_ahead_bytes = 512;
  const uint32_t x = builder.input(Type::kFloat);
  const uint32_t y = builder.output(Type::kFloat);
  builder.store(y, {one(), slot(0)}, add_softmax(builder, builder.load(x, {one(), slot(0)})));
  for (int64_t columns : {1, 20, 150}) {
    expect_as_evaluated(builder.kernel, {{random_elements(Type::kFloat, 7 * columns),
                                          Elements(Type::kFloat, 7 * columns)},
                                         {columns, 7},
                                         {}});
  }
  const std::string source = print_kernel(builder.kernel, {Target::Kind::kCpu, 8}).source;
  EXPECT_NE(source.find("lazy_prefetch(p_in0 + r0 * s0 + i + 128)"), std::string::npos);
  EXPECT_NE(source.find("lazy_prefetch_to_write(p_out1 + r0 * s0 + i + 128)"), std::string::npos);
}

TEST(PrintedSweeps, ComputeExponentialsOfRowsByPairs) {
  LoopBuilder builder(Axis::kReduction, {slot(0)}, {slot(1)});
  builder.kernel.size_slots = 2;
  const ExprId value = builder.load(builder.input(Type::kFloat), {slot(1), one()});
  const ExprId sum = builder.op(Op::kReduceSum, {builder.op(Op::kExp, {value})});
  builder.store(builder.output(Type::kFloat), {one(), Size::constant(0)}, sum);
  const auto goes_by = [&](int lanes, const std::string& step) {
    const std::string source = print_kernel(builder.kernel, {Target::Kind::kCpu, lanes}).source;
    return source.find("i += " + step + ")") != std::string::npos;
  };
  EXPECT_TRUE(goes_by(8, "16"));
  EXPECT_FALSE(goes_by(16, "32"));
}

TEST(PrintedSweeps, SoftmaxInPlaceReadsBeforeItWrites) {
  LoopBuilder builder(Axis::kReduction, {slot(0)}, {slot(1)});
  builder.kernel.size_slots = 2;
  const uint32_t x = builder.output(Type::kFloat);
  builder.store(x, {slot(1), one()}, add_softmax(builder, builder.load(x, {slot(1), one()})));
  expect_as_evaluated(builder.kernel, {{random_elements(Type::kFloat, 3 * 50)}, {3, 50}, {}});
}

TEST(PrintedSweeps, NormalizesOverTwoDimensionsAndStoresRowValues) {
  // As batch norm of NCHW: statistics of each channel over N and HW, weight per channel.
  for (Axis axis : {Axis::kReduction, Axis::kParallel}) {
    const bool lanes_inside = axis == Axis::kReduction;
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

TEST(PrintedSweeps, CrossEntropyGathersByTheTarget) {
  // -log_softmax(x)[target], 0 where the target is to be ignored.
  LoopBuilder builder(Axis::kReduction, {slot(0)}, {slot(1)});
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

// A kernel of random expressions over [parallel 0, parallel 1] x [reduced]: loads with and without
// strides along each dimension, arithmetic, reductions of some and their use, in any order.
LoopBuilder random_kernel(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto one_of = [&](uint64_t count) { return random() % count; };
  LoopBuilder builder(one_of(2) == 0 ? Axis::kParallel : Axis::kReduction, {slot(0), slot(1)},
                      {slot(2)}, Size::constant(48));
  builder.kernel.size_slots = 5;
  // Of [p0][r0][p1]: slot 3 is parallel 1 * reduced, slot 1 the stride of the reduction dimension.
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

TEST(PrintedSweeps, RandomKernelsAreAsEvaluated) {
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

}  // namespace
}  // namespace torch_lazy::codegen
