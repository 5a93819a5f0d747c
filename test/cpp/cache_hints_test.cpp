// Which stores are non-temporal, and which kernels fetch ahead.

#include "codegen/cache_hints.h"

#include <gtest/gtest.h>

#include "loop_builder.h"

namespace torch_lazy::codegen {
namespace {

constexpr int64_t kLeastBytes = 4000, kCache = 4000;

// y[i, j] = -x[i, j] of rows * 10 floats.
LoweredKernel negated(int64_t rows) {
  LoopBuilder builder(Axis::kParallel, {Size::of_slot(0), Size::of_slot(1)}, {},
                      Size::constant(16));
  builder.kernel.size_slots = 2;
  const uint32_t x = builder.input(Type::kFloat);
  const uint32_t y = builder.output(Type::kFloat);
  const std::vector<Size> strides{Size::of_slot(1), Size::constant(1)};
  builder.store(y, strides, builder.op(Op::kNeg, {builder.load(x, strides)}));
  LoweredKernel lowered;
  lowered.kernel = builder.kernel;
  lowered.sizes = {rows, 10};
  return lowered;
}

// y[i, j] = x[i, j] - the maximum of x[k, j] over k, of rows * columns floats.
LoweredKernel below_column_maxima(int64_t rows, int64_t columns) {
  LoopBuilder builder(Axis::kParallel, {Size::of_slot(1)}, {Size::of_slot(0)}, Size::constant(16));
  builder.kernel.size_slots = 2;
  const uint32_t x = builder.input(Type::kFloat);
  const uint32_t y = builder.output(Type::kFloat);
  const std::vector<Size> strides{Size::constant(1), Size::of_slot(1)};
  const ExprId element = builder.load(x, strides);
  const ExprId maximum = builder.op(Op::kReduceMax, {element});
  builder.store(y, strides, builder.op(Op::kSub, {element, maximum}));
  LoweredKernel lowered;
  lowered.kernel = builder.kernel;
  lowered.sizes = {rows, columns};
  return lowered;
}

TEST(NontemporalStores, AreThoseOfManyBytes) {
  LoweredKernel small = negated(99), large = negated(100);
  mark_nontemporal_stores(small, kLeastBytes);
  mark_nontemporal_stores(large, kLeastBytes);
  EXPECT_FALSE(small.kernel.stores[0].nontemporal);
  EXPECT_TRUE(large.kernel.stores[0].nontemporal);
}

TEST(NontemporalStores, CountABroadcastDimensionOnce) {
  LoweredKernel lowered = negated(100);
  lowered.kernel.stores[0].access.strides[0] = Size::constant(0);
  mark_nontemporal_stores(lowered, kLeastBytes);
  EXPECT_FALSE(lowered.kernel.stores[0].nontemporal);
}

TEST(NontemporalStores, LeaveMemoryThatTheKernelReads) {
  LoweredKernel in_place = negated(100), overlapping = negated(100);
  in_place.kernel.exprs[0].buffer = in_place.kernel.stores[0].buffer;
  overlapping.kernel.buffers[overlapping.kernel.stores[0].buffer].exclusive = false;
  mark_nontemporal_stores(in_place, kLeastBytes);
  mark_nontemporal_stores(overlapping, kLeastBytes);
  EXPECT_FALSE(in_place.kernel.stores[0].nontemporal);
  EXPECT_FALSE(overlapping.kernel.stores[0].nontemporal);
}

TEST(NontemporalStores, GoAlongRows) {
  LoweredKernel along = negated(100), down = below_column_maxima(100, 10);
  mark_nontemporal_stores(along, kLeastBytes);
  mark_nontemporal_stores(down, kLeastBytes);
  EXPECT_TRUE(along.kernel.stores[0].nontemporal);
  EXPECT_FALSE(down.kernel.stores[0].nontemporal);
}

TEST(FetchingAhead, IsOfKernelsThatMoveMoreThanTheCacheHolds) {
  LoweredKernel small = negated(49), large = negated(50);  // 40 bytes a row read, 40 written
  fetch_rows_ahead(small, kCache);
  fetch_rows_ahead(large, kCache);
  EXPECT_EQ(small.kernel.fetch_ahead_bytes, 0);
  EXPECT_GT(large.kernel.fetch_ahead_bytes, 0);
}

TEST(FetchingAhead, IsLessDownColumnsOfMoreRows) {
  LoweredKernel few = below_column_maxima(2, 1000), more = below_column_maxima(100, 1000),
                many = below_column_maxima(1000, 1000);
  for (LoweredKernel* kernel : {&few, &more, &many}) fetch_rows_ahead(*kernel, kCache);
  EXPECT_GT(few.kernel.fetch_ahead_bytes, more.kernel.fetch_ahead_bytes);
  EXPECT_GT(more.kernel.fetch_ahead_bytes, 0);
  EXPECT_EQ(many.kernel.fetch_ahead_bytes, 0);
}

TEST(FetchingAhead, LeavesRowsThatDriveEachOtherOutOfTheCache) {
  LoweredKernel few = below_column_maxima(4, 16384),
                many = below_column_maxima(5, 16384);  // read and written
  for (LoweredKernel* kernel : {&few, &many}) fetch_rows_ahead(*kernel, kCache);
  EXPECT_GT(few.kernel.fetch_ahead_bytes, 0);
  EXPECT_EQ(many.kernel.fetch_ahead_bytes, 0);
}

TEST(FetchingAhead, LeavesColumnsThatAreReadOnly) {
  LoweredKernel maxima = below_column_maxima(2, 1000);
  maxima.kernel.stores[0].expr = 1;  // y[j] = the maximum
  maxima.kernel.stores[0].access.strides.back() = Size::constant(0);
  fetch_rows_ahead(maxima, kCache);
  EXPECT_EQ(maxima.kernel.fetch_ahead_bytes, 0);
}

TEST(FetchingAhead, LeavesReductionsAlongTheLanesToTheirSweeps) {
  LoweredKernel rows = below_column_maxima(2, 1000);
  rows.kernel.axis = Axis::kReduction;
  fetch_rows_ahead(rows, kCache);
  EXPECT_EQ(rows.kernel.fetch_ahead_bytes, 0);
}

}  // namespace
}  // namespace torch_lazy::codegen
