// NVRTC compiles what the printer prints for CUDA, for real architectures; no GPU is needed.

#include <gtest/gtest.h>

#include "codegen/printer.h"
#include "loop_builder.h"
#include "nvrtc.h"

namespace torch_lazy::codegen {
namespace {

using torch_lazy::tests::Nvrtc;
using torch_lazy::tests::NvrtcResult;

void expect_compiles(LoopBuilder& builder) {
  verify(builder.kernel);
  const PrintedKernel printed = print_kernel(builder.kernel, {.kind = Target::Kind::kCuda});
  for (const char* architecture : {"sm_80", "sm_90", "sm_100"}) {
    const NvrtcResult result = Nvrtc::get().compile(printed.source, architecture);
    EXPECT_TRUE(result.compiled) << architecture << "\n" << result.log << "\n" << printed.source;
    EXPECT_GT(result.cubin_bytes, 0u);
    if (!result.compiled) return;
  }
}

LoopBuilder rows() {
  LoopBuilder builder(Axis::kReduction, {slot(0)}, {slot(1)});
  builder.kernel.size_slots = 4;
  return builder;
}

LoopBuilder pointwise() {
  LoopBuilder builder(Axis::kParallel, {slot(0), slot(1)}, {}, slot(2));
  builder.kernel.size_slots = 4;
  return builder;
}

TEST(CudaKernels, PointwiseWithBroadcastAndStrides) {
  LoopBuilder builder = pointwise();
  const uint32_t x = builder.input(Type::kFloat);
  const uint32_t bias = builder.input(Type::kFloat);
  const uint32_t y = builder.output(Type::kFloat);
  const ExprId sum =
      builder.op(Op::kAdd, {builder.load(x, {one(), slot(3)}), builder.load(bias, sizes({0, 1}))});
  const ExprId erf = builder.op(Op::kErf, {builder.op(Op::kMul, {sum, builder.number(0)})});
  builder.store(y, {slot(1), one()},
                builder.op(Op::kTanh, {builder.op(Op::kPow, {erf, builder.number(1)})}));
  expect_compiles(builder);
}

TEST(CudaKernels, EveryTypeAndCastBetween) {
  for (Type type :
       {Type::kBool, Type::kUInt8, Type::kInt8, Type::kInt16, Type::kInt32, Type::kInt64,
        Type::kFloat8E4M3FN, Type::kFloat8E5M2, Type::kBFloat16, Type::kHalf, Type::kDouble}) {
    LoopBuilder builder = pointwise();
    const uint32_t x = builder.input(type);
    const uint32_t y = builder.output(Type::kFloat);
    const uint32_t z = builder.output(type);
    const ExprId value = builder.cast(builder.load(x, {slot(1), one()}), Type::kFloat);
    const ExprId exp = builder.op(Op::kExp, {value});
    builder.store(y, {slot(1), one()}, exp);
    builder.store(z, {slot(1), one()}, builder.cast(exp, type));
    expect_compiles(builder);
  }
}

TEST(CudaKernels, IntegersIndicesAndSelections) {
  LoopBuilder builder = pointwise();
  const uint32_t x = builder.input(Type::kInt64);
  const uint32_t y = builder.output(Type::kInt64);
  const ExprId value = builder.load(x, {slot(1), one()});
  const ExprId below = builder.op(Op::kLess, {builder.index(0), builder.index(1)});
  const ExprId quotient = builder.op(Op::kDivFloor, {value, builder.integer(3, Type::kInt64)});
  const ExprId rest = builder.op(Op::kRemainder, {value, builder.integer(3, Type::kInt64)});
  builder.store(y, {slot(1), one()}, builder.op(Op::kSelect, {below, quotient, rest}));
  expect_compiles(builder);
}

TEST(CudaKernels, RandomNumbers) {
  LoopBuilder builder = pointwise();
  const uint32_t keys = builder.input(Type::kInt64);
  const uint32_t y = builder.output(Type::kFloat);
  const ExprId key = builder.load(keys, sizes({0, 0}));
  builder.store(y, {slot(1), one()}, builder.op(Op::kPhiloxUniform, {builder.index(1), key}));
  expect_compiles(builder);
}

TEST(CudaKernels, GatherUnderAPredicateAndScatter) {
  LoopBuilder builder = pointwise();
  const uint32_t table = builder.input(Type::kFloat);
  const uint32_t index = builder.input(Type::kInt64);
  const uint32_t y = builder.output(Type::kFloat);
  const ExprId row = builder.load(index, sizes({1, 0}));
  const ExprId column = builder.load(index, sizes({0, 1}));
  const ExprId valid = builder.op(Op::kGreaterEqual, {column, builder.integer(0, Type::kInt64)});
  const ExprId value = builder.load(table, sizes({0, 0}), valid, {{row, slot(1)}, {column, one()}});
  builder.store(y, {slot(1), Size::constant(0)}, value, valid, {{column, one()}});
  expect_compiles(builder);
}

TEST(CudaKernels, EveryReductionOfRowsAndColumns) {
  for (Axis axis : {Axis::kReduction, Axis::kParallel}) {
    LoopBuilder builder(axis, {slot(0)}, {slot(1), slot(2)}, slot(3));
    builder.kernel.size_slots = 4;
    const uint32_t x = builder.input(Type::kFloat);
    const ExprId value = builder.load(x, {one(), slot(1), slot(2)});
    const ExprId positive = builder.op(Op::kGreater, {value, builder.integer(0, Type::kFloat)});
    for (Op op : {Op::kReduceSum, Op::kReduceProd, Op::kReduceMin, Op::kReduceMax,
                  Op::kReduceArgMax, Op::kReduceArgMin}) {
      const ExprId result = builder.op(op, {value});
      builder.store(builder.output(builder.type_of(result)), {one()}, result);
    }
    for (Op op : {Op::kReduceAnd, Op::kReduceOr}) {
      builder.store(builder.output(Type::kBool), {one()}, builder.op(op, {positive}));
    }
    expect_compiles(builder);
  }
}

TEST(CudaKernels, SoftmaxInThreePasses) {
  LoopBuilder builder = rows();
  const uint32_t x = builder.input(Type::kBFloat16);
  const uint32_t y = builder.output(Type::kBFloat16);
  const ExprId value = builder.cast(builder.load(x, {slot(1), one()}), Type::kFloat);
  const ExprId greatest = builder.op(Op::kReduceMax, {value});
  const ExprId exp = builder.op(Op::kExp, {builder.op(Op::kSub, {value, greatest})});
  const ExprId result = builder.op(Op::kDiv, {exp, builder.op(Op::kReduceSum, {exp})});
  builder.store(y, {slot(1), one()}, builder.cast(result, Type::kBFloat16));
  expect_compiles(builder);
}

}  // namespace
}  // namespace torch_lazy::codegen
