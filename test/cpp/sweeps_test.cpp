// What is kept from one sweep over the reduction dimensions to a later one.

#include "codegen/sweeps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "loop_builder.h"

namespace torch_lazy::codegen {
namespace {

TEST(Sweeps, WhatIsDearIsKeptBeforeWhatIsCheap) {
  LoopBuilder builder(Axis::kReduction, {slot(0)}, {slot(1)});
  builder.kernel.size_slots = 2;
  const auto load = [&] { return builder.load(builder.input(Type::kFloat), {slot(1), one()}); };
  const ExprId dear = builder.op(Op::kExp, {load()});
  std::vector<ExprId> cheap;  // as many as there is place for
  for (int i = 0; i < 4; ++i) cheap.push_back(load());
  ExprId first = dear;
  for (const ExprId each : cheap) first = builder.op(Op::kAdd, {first, each});
  ExprId second = builder.op(Op::kMul, {dear, builder.op(Op::kReduceSum, {first})});
  for (const ExprId each : cheap) second = builder.op(Op::kAdd, {second, each});
  builder.store(builder.output(Type::kFloat), {slot(1), one()}, second);

  const Schedule schedule = make_schedule(builder.kernel, Spilling::kRegisters);

  ASSERT_EQ(schedule.sweeps.size(), 2);
  EXPECT_EQ(std::ranges::count(schedule.sweeps[0].spilled, dear), 1);
  EXPECT_EQ(schedule.sweeps[0].spilled.size(), 4);
}

}  // namespace
}  // namespace torch_lazy::codegen
