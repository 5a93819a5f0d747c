// Which stores are non-temporal, and which kernels fetch ahead.

#include "codegen/cache_hints.h"

#include <gtest/gtest.h>

#include "loop_builder.h"

namespace torch_lazy::codegen {
namespace {

constexpr int64_t kLeastBytes = 4000;

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

TEST(FetchingAhead, IsOfKernelsThatMoveManyBytes) {
  LoweredKernel small = negated(49), large = negated(50);  // 40 bytes a row read, 40 written
  fetch_large_rows_ahead(small, kLeastBytes);
  fetch_large_rows_ahead(large, kLeastBytes);
  EXPECT_FALSE(small.kernel.fetches_ahead);
  EXPECT_TRUE(large.kernel.fetches_ahead);
}

TEST(FetchingAhead, LeavesReductionsToTheirPasses) {
  LoweredKernel reduction = negated(1000);
  reduction.kernel.reduction = {reduction.kernel.parallel.back()};
  reduction.kernel.parallel.pop_back();
  fetch_large_rows_ahead(reduction, kLeastBytes);
  EXPECT_FALSE(reduction.kernel.fetches_ahead);
}

}  // namespace
}  // namespace torch_lazy::codegen
