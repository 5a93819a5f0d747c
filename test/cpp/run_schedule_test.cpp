// Which steps of a plan are given to a device together, and which before a window is complete.

#include "plan/run_schedule.h"

#include <gtest/gtest.h>

#include <string>

#include "planned.h"

namespace torch_lazy {
namespace {

using tests::kTwoProducts;
using tests::planned;

// A line for each step, with "launch" behind the last of kernels that are launched together, and
// below a line where a run may be as soon as so many nodes are known.
std::string text(const Plan& plan, size_t most_together) {
  const RunSchedule schedule = schedule_run(plan, most_together);
  std::string text;
  auto stage = schedule.early.begin();
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (const auto* kernel = std::get_if<KernelStep>(&plan.steps[i].action))
      text += kernel->name;
    else if (const auto* call = std::get_if<LibraryStep>(&plan.steps[i].action))
      text += call->step.op->name;
    else
      continue;
    text += schedule.launches_after[i] ? ", launch\n" : "\n";
    if (stage == schedule.early.end() || stage->end != i + 1) continue;
    text += "-- " + std::to_string(stage->nodes) + " nodes, " +
            std::to_string(stage->inputs.size()) + " more inputs\n";
    ++stage;
  }
  return text;
}

TEST(RunSchedule, EveryLibraryCallEndsASequenceOfKernelsAndIsAStageOfItsOwn) {
  EXPECT_EQ(text(planned(kTwoProducts), 32), R"(kernel_exp, launch
-- 1 nodes, 1 more inputs
aten::mm
-- 2 nodes, 0 more inputs
kernel_sin, launch
-- 3 nodes, 0 more inputs
aten::mm
-- 4 nodes, 1 more inputs
)");
}

// Sums over different dimensions are different kernels.
const std::string kThreeKernels = R"(graph(%a : Float(16, 16, strides=[16, 1], device=cpu),
      %b : Float(16, 16, strides=[16, 1], device=cpu), %c : Float(16, strides=[1], device=cpu)):
  %none : NoneType = prim::Constant()
  %false : bool = prim::Constant[value=0]()
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %first : int[] = prim::ListConstruct(%0)
  %second : int[] = prim::ListConstruct(%1)
  %x : Float(16, strides=[1], device=cpu) = aten::sum(%a, %first, %false, %none)
  %y : Float(16, strides=[1], device=cpu) = aten::sum(%b, %second, %false, %none)
  %z : Float(16, strides=[1], device=cpu) = aten::sin(%c)
  return (%x, %y, %z))";

TEST(RunSchedule, KernelsBesideEachOtherAreLaunchedTogether) {
  EXPECT_EQ(text(planned(kThreeKernels), 32), R"(kernel_sum
kernel_sum
kernel_sin, launch
-- 9 nodes, 3 more inputs
)");
}

TEST(RunSchedule, NoMoreKernelsAreLaunchedTogetherThanTheDeviceIsGivenAtOnce) {
  EXPECT_EQ(text(planned(kThreeKernels), 2), R"(kernel_sum
kernel_sum, launch
-- 8 nodes, 2 more inputs
kernel_sin, launch
-- 9 nodes, 1 more inputs
)");
}

TEST(RunSchedule, NoStageWritesAnInput) {
  const Plan plan = planned(R"(graph(%a : Float(2, 2, strides=[2, 1], device=cpu)):
  %x : Float(2, 2, strides=[2, 1], device=cpu) = aten::exp(%a)
  %m : Float(2, 2, strides=[2, 1], device=cpu) = aten::mm(%x, %x)
  %s : Float(2, 2, strides=[2, 1], device=cpu) = aten::sin(%m)
  %false : bool = prim::Constant[value=0]()
  %w : Float(2, 2, strides=[2, 1], device=cpu) = aten::copy_(%a, %s, %false)
  return ())");

  const RunSchedule schedule = schedule_run(plan, 32);

  ASSERT_EQ(schedule.early.size(), 2);
  EXPECT_LE(schedule.early.back().end, plan.first_write);
}

TEST(RunSchedule, NoStageWaitsForTheDeviceToCheckIndices) {
  const Plan plan = planned(R"(graph(%w : Float(5, 4, strides=[4, 1], device=cpu),
      %i : Long(4, strides=[1], device=cpu)):
  %dim : int = prim::Constant[value=0]()
  %g : Float(4, 4, strides=[4, 1], device=cpu) = aten::index_select(%w, %dim, %i)
  %y : Float(4, 4, strides=[4, 1], device=cpu) = aten::sin(%g)
  return (%y))");

  EXPECT_TRUE(schedule_run(plan, 32).early.empty());
}

TEST(RunSchedule, ACopyOfAnInputOnTheDeviceIsAStageAsAnyOther) {
  const Plan plan = planned(R"(graph(%a : Float(16, 16, strides=[1, 16], device=cpu)):
  %0 : int = prim::Constant[value=0]()
  %x : Float(16, 16, strides=[16, 1], device=cpu) = aten::clone(%a, %0)
  %y : Float(16, 16, strides=[16, 1], device=cpu) = aten::mm(%x, %x)
  return (%y))");

  EXPECT_EQ(schedule_run(plan, 32).early.back().nodes, 3) << to_string(plan);
}

}  // namespace
}  // namespace torch_lazy
