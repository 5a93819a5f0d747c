// The loop IR's text, and what verify() refuses.

#include "codegen/loop_ir.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "loop_builder.h"

namespace torch_lazy::codegen {
namespace {

// Centered rows: y = x - mean(x), and the means.
LoopBuilder centered_rows() {
  const Size rows = Size::of_slot(0);
  const Size columns = Size::of_slot(1);
  LoopBuilder builder(Axis::kReduction, {rows}, {columns});
  builder.kernel.name = "mean_sub";
  builder.kernel.size_slots = 2;
  const uint32_t x = builder.input(Type::kFloat);
  const uint32_t y = builder.output(Type::kFloat);
  const uint32_t mean_out = builder.output(Type::kFloat);
  const ExprId value = builder.load(x, {columns, Size::constant(1)});
  const ExprId sum = builder.op(Op::kReduceSum, {value});
  const ExprId mean = builder.op(Op::kMul, {sum, builder.number(0)});
  builder.store(y, {columns, Size::constant(1)}, builder.op(Op::kSub, {value, mean}));
  builder.store(mean_out, sizes({1}), mean);
  return builder;
}

// The message with which verify() refuses the kernel; empty where it accepts.
std::string refusal(const LoopBuilder& builder) {
  try {
    verify(builder.kernel);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(LoopIrText, HasALineForEveryLoopExpressionAndStore) {
  LoopBuilder builder = centered_rows();
  builder.kernel.comments = {"model.py:3  y = x - x.mean(1, keepdim=True)"};
  EXPECT_EQ(to_string(builder.kernel),
            R"(kernel mean_sub lanes=reduction
  # model.py:3  y = x - x.mean(1, keepdim=True)
  buffer in0: float
  buffer out1: float written
  buffer out2: float written
  for p0 < S0
  reduce r0 < S1
  %0: float = load in0[p0 * S1 + r0]
  %1: float = reduce_sum %0
  %2: float = number D0
  %3: float = mul %1, %2
  %4: float = sub %0, %3
  store out1[p0 * S1 + r0] = %4
  store out2[p0] = %3
)");
}

TEST(LoopIrText, ShowsPredicatesIndicesAndBlocks) {
  LoopBuilder builder(Axis::kParallel, sizes({10}), {}, Size::constant(64));
  const uint32_t table = builder.input(Type::kBFloat16);
  const uint32_t index = builder.input(Type::kInt64);
  const uint32_t out = builder.output(Type::kBFloat16);
  builder.kernel.buffers[out].exclusive = false;
  const ExprId row = builder.load(index, sizes({1}));
  const ExprId valid = builder.op(Op::kGreaterEqual, {row, builder.integer(0, Type::kInt64)});
  builder.store(out, sizes({2}), builder.load(table, sizes({0}), valid, {{row, Size::constant(8)}}),
                valid);
  EXPECT_EQ(to_string(builder.kernel),
            R"(kernel kernel lanes=parallel block=64
  buffer in0: bfloat16
  buffer in1: int64
  buffer out2: bfloat16 written shared
  for p0 < 10
  %0: int64 = load in1[p0]
  %1: int64 = integer 0
  %2: bool = greater_equal %0, %1
  %3: bfloat16 = load in0[%0 * 8] if %2
  store out2[p0 * 2] = %3 if %2
)");
}

TEST(LoopIrVerify, AcceptsAKernel) {
  EXPECT_EQ(refusal(centered_rows()), "");
}

TEST(LoopIrVerify, NamesTheKernelAndTheExpression) {
  LoopBuilder builder = centered_rows();
  builder.kernel.exprs[1].arguments = {3};
  EXPECT_EQ(
      refusal(builder),
      "loop IR of kernel 'mean_sub': %1 (reduce_sum) reads %3, which does not come before it");
}

TEST(LoopIrVerify, RefusesOperandsOfAnotherType) {
  LoopBuilder builder = centered_rows();
  builder.kernel.exprs[2].type = Type::kDouble;
  EXPECT_NE(refusal(builder).find("needs %2 of type float, which is double"), std::string::npos);
}

TEST(LoopIrVerify, RefusesArithmeticOnTypesThatAreOnlyStored) {
  LoopBuilder builder = centered_rows();
  builder.kernel.buffers[0].type = Type::kBFloat16;
  for (ExprId id : {0, 1}) builder.kernel.exprs[id].type = Type::kBFloat16;
  EXPECT_NE(refusal(builder).find("computes in bfloat16; cast to float first"), std::string::npos);
}

TEST(LoopIrVerify, RefusesToStoreWhatVariesWithoutAStrideForIt) {
  LoopBuilder builder = centered_rows();
  builder.kernel.stores[1].expr = 0;
  EXPECT_NE(refusal(builder).find("varies along a reduction dimension but has no strides"),
            std::string::npos);
}

TEST(LoopIrVerify, RefusesSlotsThatDoNotExist) {
  LoopBuilder builder = centered_rows();
  builder.kernel.size_slots = 1;
  EXPECT_NE(refusal(builder).find("uses size slot 1 of 1"), std::string::npos);
}

TEST(LoopIrVerify, RefusesStoresToBuffersThatAreNotWritten) {
  LoopBuilder builder = centered_rows();
  builder.kernel.buffers[1].written = false;
  EXPECT_NE(refusal(builder).find("is to a buffer not marked as written"), std::string::npos);
}

TEST(LoopIrVerify, RefusesReductionsWithoutReducedDimensions) {
  LoopBuilder builder(Axis::kParallel, sizes({10}), {});
  const uint32_t x = builder.input(Type::kFloat);
  const uint32_t y = builder.output(Type::kFloat);
  builder.store(y, sizes({1}), builder.op(Op::kReduceSum, {builder.load(x, sizes({1}))}));
  EXPECT_NE(refusal(builder).find("in a kernel without reduction dimensions"), std::string::npos);
}

TEST(LoopIrVerify, RefusesLanesWithoutABlock) {
  LoopBuilder builder(Axis::kParallel, sizes({10}), {}, Size::constant(0));
  builder.store(builder.output(Type::kInt64), sizes({1}), builder.index(0));
  EXPECT_NE(refusal(builder).find("has lanes along a parallel dimension but no block"),
            std::string::npos);
}

}  // namespace
}  // namespace torch_lazy::codegen
