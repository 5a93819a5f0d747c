// The threads that kernels are launched with on a GPU.

#include "codegen/launch_shape.h"

#include <gtest/gtest.h>

#include "loop_builder.h"

namespace torch_lazy::codegen {
namespace {

constexpr GpuLimits kLaunchGpu{.multiprocessors = 100, .threads_per_multiprocessor = 2048};

// y[i] = sum of x[i, :].
LoweredKernel row_sum(int64_t rows, int64_t columns) {
  LoopBuilder builder(Axis::kReduction, {slot(0)}, {slot(1)});
  builder.kernel.size_slots = 2;
  const ExprId value = builder.load(builder.input(Type::kFloat), {slot(1), one()});
  builder.store(builder.output(Type::kFloat), {one()}, builder.op(Op::kReduceSum, {value}));
  LoweredKernel lowered;
  lowered.kernel = builder.kernel;
  lowered.sizes = {rows, columns};
  lowered.work_items = rows;
  return lowered;
}

TEST(LaunchShape, GivesAWarpToEachOfManyShortRows) {
  EXPECT_EQ(launch_shape(row_sum(1 << 20, 100), kLaunchGpu), (LaunchShape{32, 8, 3200}));
}

TEST(LaunchShape, GivesABlockToEachLongRow) {
  EXPECT_EQ(launch_shape(row_sum(10000, 32768), kLaunchGpu), (LaunchShape{1024, 1, 800}));
}

TEST(LaunchShape, GivesMoreThreadsToRowsWhereTheyAreFew) {
  EXPECT_EQ(launch_shape(row_sum(10, 1000), kLaunchGpu), (LaunchShape{256, 1, 10}));
}

TEST(LaunchShape, GivesABlockToColumnsWhoseStepsItsThreadsShare) {
  LoweredKernel lowered = row_sum(1000, 40);
  lowered.kernel.thread_loop.rows = 8;
  EXPECT_EQ(launch_shape(lowered, kLaunchGpu), (LaunchShape{32, 8, 1000}));
}

TEST(LaunchShape, GivesTheThreadsThatHoldIt) {
  LoweredKernel lowered = row_sum(1000, 4096);
  lowered.kernel.thread_loop = {.packet = 4, .packets = 4, .holds_row = true, .threads = 256};
  EXPECT_EQ(launch_shape(lowered, kLaunchGpu), (LaunchShape{256, 1, 1000}));
}

TEST(LaunchShape, GivesTheSharedMemoryThatHoldsTheRow) {
  LoweredKernel lowered = row_sum(1000, 40000);
  Kernel& kernel = lowered.kernel;
  // A second sweep that reads the row again.
  kernel.buffers.push_back({Type::kFloat, "again", true, true});
  kernel.exprs.push_back({.op = Op::kSub, .type = Type::kFloat, .arguments = {0, 1}});
  kernel.stores.push_back({2, {Size::constant(0), {slot(1), one()}, {}}, 2});
  kernel.thread_loop = {
      .packet = 4, .packets = 6, .holds_row = true, .threads = 1024, .shared_packets = 4};
  EXPECT_EQ(launch_shape(lowered, kLaunchGpu),
            (LaunchShape{1024, 1, 800, 4 * 4 * 1024 * sizeof(float)}));
}

TEST(LaunchShape, SharesFewWorkItemsOutOverAllMultiprocessors) {
  EXPECT_EQ(launch_shape(row_sum(300, 16), kLaunchGpu), (LaunchShape{32, 3, 100}));
}

TEST(LaunchShape, LaunchesABlockWhereThereIsNothingToDo) {
  EXPECT_EQ(launch_shape(row_sum(0, 16), kLaunchGpu), (LaunchShape{32, 1, 1}));
}

}  // namespace
}  // namespace torch_lazy::codegen
