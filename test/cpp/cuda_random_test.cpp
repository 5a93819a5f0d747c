// Random programs whose kernels are printed for CUDA and run in the emulator: the results are
// eager's, and no thread does what it must not.

#include <gtest/gtest.h>

#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "emulated_plan.h"
#include "graph_evaluator.h"
#include "nvrtc.h"
#include "random_program.h"

namespace torch_lazy {
namespace {

using tests::EmulatedWindow;
using tests::KernelReport;
using tests::RandomProgram;

// Small enough that blocks go on to further work items.
constexpr codegen::GpuLimits kSmallGpu{.multiprocessors = 2, .threads_per_multiprocessor = 128};

bool nearly_equal(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  // Sums are added up in another order.
  const double tolerance = a.scalar_type() == at::kHalf ? 1e-2 : 1e-5;
  return at::allclose(a.to(at::kDouble), b.to(at::kDouble), tolerance, tolerance,
                      /*equal_nan=*/true);
}

std::string sources(const std::vector<KernelReport>& kernels) {
  std::string text;
  for (const KernelReport& kernel : kernels) text += kernel.source + "\n" + kernel.report.text();
  return text;
}

TEST(CudaRandom, ComputesWhatWasRecorded) {
  size_t kernels = 0;
  for (uint32_t seed = 0; seed < 300 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomProgram program(seed);
    const RandomProgram::Handles live = program.live();
    std::optional<EmulatedWindow> run;
    try {
      run = tests::run_emulated(program.window(), live, kSmallGpu);
    } catch (const c10::Error&) {
      continue;  // has no functional form; see functionalize_random_test.cpp
    }
    const WindowGraph graph = cpu_graph(program.window().tape, program.window().live(live));
    const std::vector<at::Tensor> inputs = program.window().inputs();
    const std::vector<at::Tensor> outputs = tests::evaluate(*graph.graph, inputs);

    ASSERT_EQ(run->outputs.size(), outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_TRUE(nearly_equal(run->outputs[i], outputs[i])) << "output " << i << " is\n"
                                                             << run->outputs[i] << "\nnot\n"
                                                             << outputs[i] << "\n"
                                                             << sources(run->kernels);
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_TRUE(nearly_equal(run->inputs[i], inputs[i])) << "input " << i << " is\n"
                                                           << run->inputs[i] << "\nnot\n"
                                                           << inputs[i] << "\n"
                                                           << sources(run->kernels);
    }
    for (const KernelReport& kernel : run->kernels) {
      EXPECT_EQ(kernel.report.text(), "") << kernel.source;
    }
    kernels += run->kernels.size();
  }
  EXPECT_GT(kernels, 300u);
}

TEST(CudaRandom, CompilesForRealArchitecturesAndSpillsNothing) {
  const tests::Nvrtc& nvrtc = tests::Nvrtc::get();
  const char* const architectures[] = {"sm_80", "sm_90", "sm_100"};
  size_t kernels = 0;
  for (uint32_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomProgram program(seed);
    std::optional<EmulatedWindow> run;
    try {
      run = tests::run_emulated(program.window(), program.live(), kSmallGpu);
    } catch (const c10::Error&) {
      continue;  // as above
    }
    for (const KernelReport& kernel : run->kernels) {
      const tests::NvrtcResult result =
          nvrtc.compile(kernel.source, architectures[kernels++ % std::size(architectures)]);
      EXPECT_TRUE(result.compiled) << result.log << kernel.source;
      EXPECT_EQ(result.spilled_bytes, 0) << result.log << kernel.source;
    }
  }
  EXPECT_GT(kernels, 30u);
}

}  // namespace
}  // namespace torch_lazy
