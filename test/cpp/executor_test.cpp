// Plans run by an executor whose device is made up: kernels are functions of this file.

#include "plan/executor.h"

#include <gtest/gtest.h>

#include "plan/step_times.h"
#include "planned.h"

namespace torch_lazy {
namespace {

using Pointers = c10::ArrayRef<void*>;
using tests::planned;

// Runs every kernel as `function` on the CPU's memory; all else is as Launcher has it.
class FunctionLauncher final : public Launcher {
 public:
  using Function = void (*)(const KernelStep&, Pointers);
  explicit FunctionLauncher(Function function) : Launcher(c10::kCPU), function_(function) {}
  void launch(const KernelStep& kernel, Pointers pointers) const override {
    function_(kernel, pointers);
  }

 private:
  const Function function_;
};

RunResult run(Plan plan, FunctionLauncher::Function function,
              const std::vector<at::Tensor>& inputs) {
  return PlanExecutable(std::move(plan), std::make_unique<FunctionLauncher>(function)).run(inputs);
}

std::string message_of(const RunResult& result) {
  try {
    std::rethrow_exception(result.failure.value().error);
  } catch (const std::exception& error) {
    return error.what();
  }
}

void add_one_to_four(const KernelStep&, Pointers pointers) {
  const auto* from = static_cast<const float*>(pointers[0]);
  auto* to = static_cast<float*>(pointers[1]);
  for (int i = 0; i < 4; ++i) to[i] = from[i] + 1;
}

void do_nothing(const KernelStep&, Pointers) {}

const std::string kKernelAndProduct = R"(graph(%a : Float(2, 2, strides=[2, 1], device=cpu)):
  %x : Float(2, 2, strides=[2, 1], device=cpu) = aten::exp(%a)
  %m : Float(2, 2, strides=[2, 1], device=cpu) = aten::mm(%x, %x)
  return (%m))";

TEST(Executor, KernelsGoToTheLauncherAndLibraryCallsToATen) {
  const RunResult result = run(planned(kKernelAndProduct), add_one_to_four, {at::zeros({2, 2})});

  ASSERT_FALSE(result.failure);
  EXPECT_TRUE(at::equal(result.outputs.at(0), at::full({2, 2}, 2.0)));
}

TEST(Executor, APlanWithKernelsNeedsALauncherOfItsOwn) {
  PlanExecutable executable(planned(kKernelAndProduct), std::make_unique<Launcher>(c10::kCPU));

  const RunResult result = executable.run({at::zeros({2, 2})});

  EXPECT_NE(message_of(result).find("there is nothing that launches kernel_exp on cpu"),
            std::string::npos)
      << message_of(result);
}

const std::string kGather = R"(graph(%w : Float(5, 4, strides=[4, 1], device=cpu),
      %i : Long(4, strides=[1], device=cpu)):
  %dim : int = prim::Constant[value=0]()
  %g : Float(4, 4, strides=[4, 1], device=cpu) = aten::index_select(%w, %dim, %i)
  %y : Float(4, 4, strides=[4, 1], device=cpu) = aten::sin(%g)
  return (%y))";

TEST(Executor, IndicesWithinTheLimitPassTheCheck) {
  const RunResult result =
      run(planned(kGather), do_nothing, {at::ones({5, 4}), at::tensor({0, 1, 2, 4})});

  EXPECT_FALSE(result.failure);
}

TEST(Executor, AnIndexBeyondTheLimitRaisesTheOperatorsErrorAndChangesNothing) {
  const RunResult result =
      run(planned(kGather), do_nothing, {at::ones({5, 4}), at::tensor({0, 1, 2, 5})});

  EXPECT_NE(message_of(result).find("index out of range"), std::string::npos);
  EXPECT_TRUE(result.unchanged);
  EXPECT_FALSE(result.outputs.at(0).defined());
}

TEST(Executor, AVerifyingPlanNamesTheCallThatReturnsWhatTheGraphDoesNotSay) {
  const RunResult result = run(planned(R"(graph(%a : Float(2, 2, strides=[2, 1], device=cpu)):
  %m : Float(2, 2, strides=[2, 1], device=cpu) = aten::mm(%a, %a)
  return (%m))"),
                               do_nothing, {at::ones({3, 3})});

  EXPECT_NE(message_of(result).find("aten::mm made Float(3, 3, strides=[3, 1], device=cpu) for %"),
            std::string::npos)
      << message_of(result);
}

TEST(StepTimes, ReportsALineForEachNameTheLongestTimeFirst) {
  StepTimes times;
  times.add({"aten::mm", 0}, std::chrono::microseconds(20));
  times.add({"kernel_exp", 3000}, std::chrono::microseconds(30));
  times.add({"kernel_exp", 6000}, std::chrono::microseconds(60));
  times.add({"", 0}, std::chrono::microseconds(500));  // a step that costs nothing to speak of

  EXPECT_EQ(times.report(std::chrono::microseconds(700)), R"(run: 0.700 ms
  kernel_exp  2 runs  0.090 ms  9000 bytes  0.10 GB/s
  aten::mm    1 run  0.020 ms)");
}

}  // namespace
}  // namespace torch_lazy
