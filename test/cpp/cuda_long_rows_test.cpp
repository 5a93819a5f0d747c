// Rows that the registers of a block have no place for, printed for CUDA: in shared memory, and
// loaded again where that ends, they compute what the loop IR says.

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "kernel_check.h"
#include "loop_builder.h"

namespace torch_lazy::codegen {
namespace {

// A thread's packet is in registers, four are in shared memory: 256 and 1,024 elements of a row.
constexpr ThreadLoop kInShared{
    .packet = 4, .packets = 1, .holds_row = true, .threads = 64, .shared_packets = 4};
constexpr ThreadLoop kWithRest{.packet = 4,
                               .packets = 1,
                               .holds_row = true,
                               .threads = 64,
                               .shared_packets = 4,
                               .has_rest = true};
constexpr ThreadLoop kWithoutRegisters{.packet = 4,
                                       .packets = 0,
                                       .holds_row = true,
                                       .threads = 64,
                                       .shared_packets = 4,
                                       .has_rest = true};
constexpr ThreadLoop kWithoutSharedMemory{
    .packet = 4, .packets = 1, .holds_row = true, .threads = 64, .has_rest = true};

// Of random expressions over [rows] x [columns]: loads of a matrix, of a row of two types, and of a
// column, arithmetic, reductions of some and their use, in any order. Every other one writes over
// the matrix.
LoopBuilder random_rows(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto one_of = [&](uint64_t count) { return random() % count; };
  LoopBuilder builder(Axis::kReduction, {slot(0)}, {slot(1)});
  builder.kernel.size_slots = 2;
  const std::vector<Size> whole{slot(1), one()};
  const uint32_t matrix =
      seed % 2 == 0 ? builder.output(Type::kFloat) : builder.input(Type::kFloat);
  std::vector<ExprId> values{
      builder.load(matrix, whole), builder.load(builder.input(Type::kFloat), sizes({0, 1})),
      builder.cast(builder.load(builder.input(Type::kBFloat16), whole), Type::kFloat),
      builder.load(builder.input(Type::kFloat), sizes({1, 0}))};
  constexpr Op kBinary[] = {Op::kAdd, Op::kSub, Op::kMul, Op::kMin, Op::kMax};
  constexpr Op kReductions[] = {Op::kReduceMax, Op::kReduceMin, Op::kReduceSum};
  for (int i = 0; i < 10; ++i) {
    const ExprId a = values[one_of(values.size())];
    const ExprId b = values[one_of(values.size())];
    if (one_of(3) == 0) {
      const ExprId bounded = builder.op(Op::kTanh, {a});
      values.push_back(builder.op(kReductions[one_of(3)], {bounded}));
    } else {
      values.push_back(builder.op(Op::kTanh, {builder.op(kBinary[one_of(5)], {a, b})}));
    }
  }
  builder.store(matrix == 0 && seed % 2 == 0 ? matrix : builder.output(Type::kFloat), whole,
                builder.op(Op::kAdd, {values.back(), values[0]}));
  builder.store(builder.output(Type::kFloat), whole, values[values.size() - 2]);
  return builder;
}

KernelArguments arguments_of(const Kernel& kernel, int64_t rows, int64_t columns, uint64_t seed) {
  KernelArguments arguments{{}, {rows, columns}, {}};
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    arguments.buffers.push_back(random_elements(kernel.buffers[i].type, rows * columns, seed + i));
  }
  return arguments;
}

void expect_as_evaluated_with(const ThreadLoop& loop, Kernel kernel,
                              const KernelArguments& arguments) {
  const std::vector<Elements> expected = evaluated(kernel, arguments);
  kernel.thread_loop = loop;
  kernel.thread_loop.narrow = !arguments.aligned;
  expect_emulated(kernel, arguments, expected, 1e-4, {static_cast<uint32_t>(loop.threads)});
}

TEST(CudaLongRows, RandomKernelsAreAsEvaluated) {
  for (uint64_t seed = 0; seed < 10 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Kernel kernel = random_rows(seed).kernel;
    for (const int64_t columns : {37, 1277}) {
      expect_as_evaluated_with(kInShared, kernel, arguments_of(kernel, 3, columns, seed));
    }
    for (const int64_t columns : {1293, 4000}) {
      KernelArguments arguments = arguments_of(kernel, 3, columns, seed);
      arguments.aligned = columns % 2 == 0;
      expect_as_evaluated_with(kWithRest, kernel, arguments);
      expect_as_evaluated_with(seed % 2 == 0 ? kWithoutRegisters : kWithoutSharedMemory, kernel,
                               arguments);
    }
  }
}

TEST(CudaLongRows, TheIndexOfTheGreatestIsThatOfTheWholeRow) {
  LoopBuilder builder(Axis::kReduction, {slot(0)}, {slot(1)});
  builder.kernel.size_slots = 2;
  const ExprId value = builder.load(builder.input(Type::kFloat), {slot(1), one()});
  const ExprId greatest = builder.op(Op::kReduceMax, {value});
  const ExprId distance = builder.op(Op::kAbs, {builder.op(Op::kSub, {value, greatest})});
  builder.store(builder.output(Type::kInt64), {one(), Size::constant(0)},
                builder.op(Op::kReduceArgMax, {distance}));
  const KernelArguments arguments = arguments_of(builder.kernel, 4, 1000, 1);

  expect_as_evaluated_with(kWithRest, builder.kernel, arguments);
}

// What is chosen for a softmax of so many columns of floats.
ThreadLoop chosen_for(int64_t columns, int64_t shared_bytes) {
  LoopBuilder builder(Axis::kReduction, {slot(0)}, {slot(1)});
  builder.kernel.size_slots = 2;
  const ExprId value = builder.load(builder.input(Type::kFloat), {slot(1), one()});
  const ExprId exp =
      builder.op(Op::kExp, {builder.op(Op::kSub, {value, builder.op(Op::kReduceMax, {value})})});
  builder.store(builder.output(Type::kFloat), {slot(1), one()},
                builder.op(Op::kDiv, {exp, builder.op(Op::kReduceSum, {exp})}));
  return choose_thread_loop(builder.kernel, {100, columns}, shared_bytes);
}

constexpr int64_t kOfA100 = 163 << 10, kOfH100 = 227 << 10;

TEST(CudaLongRows, RowsThatFitIntoRegistersTakeNoSharedMemory) {
  EXPECT_FALSE(chosen_for(16384, kOfH100).is_long_row());
  EXPECT_GT(chosen_for(16385, kOfH100).shared_packets, 0);
}

TEST(CudaLongRows, RowsOf65536FloatsAreHeldWhole) {
  for (const int64_t bytes : {kOfA100, kOfH100}) {
    EXPECT_TRUE(chosen_for(65536, bytes).holds_row);
    EXPECT_FALSE(chosen_for(65536, bytes).has_rest);
  }
}

TEST(CudaLongRows, LongerOnesAreHeldAsFarAsItPays) {
  EXPECT_TRUE(chosen_for(200000, kOfH100).has_rest);
  EXPECT_FALSE(chosen_for(1 << 20, kOfH100).holds_row);
}

}  // namespace
}  // namespace torch_lazy::codegen
