// Kernels that are alike, small and independent are one launch on CUDA.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "adam_step.h"
#include "emulated_plan.h"
#include "graph_evaluator.h"

namespace torch_lazy {
namespace {

using tests::EmulatedWindow;
using tests::Handle;
using tests::number;
using tests::step_of_adam;
using tests::TapeBuilder;
using Handles = TapeBuilder::Handles;

constexpr codegen::GpuLimits kBatchGpu{.multiprocessors = 4, .threads_per_multiprocessor = 1024};

// Runs the window; what it computes is eager's, and no thread does what it must not.
EmulatedWindow run_as_eager(const TapeBuilder& window, const Handles& results) {
  EmulatedWindow run = tests::run_emulated(window, results, kBatchGpu);
  EXPECT_EQ(run.outputs.size(), results.size());
  for (size_t i = 0; i < run.outputs.size(); ++i) {
    EXPECT_TRUE(at::allclose(run.outputs[i], results[i].tensor, 1e-4, 1e-5)) << "output " << i;
  }
  for (const tests::KernelReport& kernel : run.kernels) {
    EXPECT_EQ(kernel.report.text(), "") << kernel.source;
  }
  return run;
}

Handle gelu(TapeBuilder& window, const Handle& x) {
  return window.call("aten::gelu", "", {x, "none"})[0];
}

TEST(CudaBatch, PointwiseKernelsOfDifferentSizesAreOneLaunch) {
  TapeBuilder window;
  Handles results;
  for (const int64_t size : {700, 129, 400, 513, 300}) {
    results.push_back(gelu(window, window.input(at::randn({size}))));
  }

  EXPECT_EQ(run_as_eager(window, results).kernels.size(), 1u);
}

TEST(CudaBatch, NumbersWithoutDimensionsAreOneLaunch) {
  TapeBuilder window;
  for (int i = 0; i < 40; ++i) {
    const Handle step = window.input(at::full({}, double(i)));
    window.call("aten::add_", "Tensor", {step, number(1.0), 1});
  }

  const EmulatedWindow run = run_as_eager(window, {});

  EXPECT_EQ(run.kernels.size(), 1u);
  for (int i = 0; i < 40; ++i) EXPECT_EQ(run.inputs[size_t(i)].item<double>(), i + 1);
}

TEST(CudaBatch, RowsThatBlocksHoldAndFoldAreOneLaunch) {
  TapeBuilder window;
  Handles results;
  for (const int64_t rows : {3, 5, 9}) {
    const Handle x = window.input(at::randn({rows, 3000 + rows}));
    results.push_back(window.call("aten::_softmax", "", {x, -1, false})[0]);
  }

  EXPECT_EQ(run_as_eager(window, results).kernels.size(), 1u);
}

TEST(CudaBatch, ColumnsThatThreadsShareAreOneLaunch) {
  TapeBuilder window;
  Handles results;
  for (const int64_t columns : {40, 100, 33}) {
    results.push_back(window.call("aten::sum", "dim_IntList",
                                  {window.input(at::randn({50, columns})), std::vector<int64_t>{0},
                                   false, c10::IValue()})[0]);
  }

  EXPECT_EQ(run_as_eager(window, results).kernels.size(), 1u);
}

TEST(CudaBatch, SquaresOfTransposesAreOneLaunch) {
  TapeBuilder window;
  Handles results;
  for (const int64_t rows : {40, 70, 9}) {
    const Handle x = window.input(at::randn({rows, 50})), y = window.input(at::randn({50, rows}));
    const Handle t = window.call("aten::t", "", {x})[0];
    results.push_back(window.call("aten::add", "Tensor", {y, t, 1})[0]);
  }

  EXPECT_EQ(run_as_eager(window, results).kernels.size(), 1u);
}

TEST(CudaBatch, KernelsThatFillPiecesOfACatAreFewLaunches) {
  TapeBuilder window;
  Handles pieces;
  for (const int64_t size : {700, 129, 400, 513, 300}) {
    pieces.push_back(gelu(window, window.input(at::randn({size}))));
  }
  const Handle cat = window.call("aten::cat", "", {pieces, 0})[0];

  // The first piece begins where the memory does, which its source knows.
  EXPECT_EQ(run_as_eager(window, {cat}).kernels.size(), 2u);
}

TEST(CudaBatch, KernelsThatWriteTheSameRowRunInTurn) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({4, 300}));
  for (const int64_t row : {1, 2, 1}) {
    const Handle part = window.call("aten::select", "int", {x, 0, row})[0];
    const Handle next = window.call("aten::select", "int", {x, 0, row + 1})[0];
    window.call("aten::add_", "Tensor", {part, gelu(window, next), 1});
  }
  const at::Tensor expected = window.inputs()[0];

  const EmulatedWindow run = run_as_eager(window, {});

  EXPECT_GE(run.kernels.size(), 2u);
  tests::evaluate(*cpu_graph(window.tape, window.live({})).graph, {expected});
  EXPECT_TRUE(at::allclose(run.inputs[0], expected, 1e-4, 1e-5));
}

TEST(CudaBatch, AKernelRunsBehindTheOneWhoseResultItReads) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({200, 300}));
  // Rows are summed by what reads them at another point.
  const Handle first = window.call("aten::cumsum", "", {gelu(window, x), 1, c10::IValue()})[0];
  const Handle second = gelu(window, first);

  EXPECT_EQ(run_as_eager(window, {second}).kernels.size(), 2u);
}

TEST(CudaBatch, AKernelDoesNotPassByOneThatReadsWhatItOverwrites) {
  TapeBuilder window;
  const Handle a = window.input(at::randn({300})), x = window.input(at::randn({4, 300}));
  window.call("aten::add_", "Tensor", {a, number(1.0), 1});
  const Handle sum = window.call("aten::sum", "dim_IntList",
                                 {x, std::vector<int64_t>{1}, false, c10::IValue()})[0];
  // Like the first, of a row that the sum has read before.
  const Handle row = window.call("aten::select", "int", {x, 0, 1})[0];
  window.call("aten::add_", "Tensor", {row, number(1.0), 1});

  EXPECT_EQ(run_as_eager(window, {sum}).kernels.size(), 3u);
}

TEST(CudaBatch, AStepOfAdamOverManyTensorsIsFewLaunches) {
  TapeBuilder window;
  for (int i = 0; i < 100; ++i) step_of_adam(window, i % 3 == 0 ? 1500 : 256 + 4 * i);

  const EmulatedWindow run = run_as_eager(window, {});

  EXPECT_LE(run.kernels.size(), 8u);
  const std::vector<at::Tensor> eager = window.inputs();
  tests::evaluate(*cpu_graph(window.tape, window.live({})).graph, eager);
  for (size_t i = 0; i < run.inputs.size(); ++i) {
    EXPECT_TRUE(at::allclose(run.inputs[i], eager[i], 1e-4, 1e-5)) << "input " << i;
  }
}

}  // namespace
}  // namespace torch_lazy
