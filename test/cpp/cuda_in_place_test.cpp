// Kernels for CUDA that write what they have read: no thread reads what another has written by
// then.

#include <gtest/gtest.h>

#include <vector>

#include "emulated_plan.h"

namespace torch_lazy {
namespace {

using tests::EmulatedWindow;
using tests::Handle;
using tests::number;
using tests::TapeBuilder;

// Of a GPU on which a block has more threads than the kernel has work for.
constexpr codegen::GpuLimits kInPlaceGpu{.multiprocessors = 2, .threads_per_multiprocessor = 1024};

EmulatedWindow add_one_in_place(const at::Tensor& x) {
  TapeBuilder window;
  const Handle input = window.input(x);
  const Handle sum = window.call("aten::add_", "Tensor", {input, number(1.0), 1})[0];
  return tests::run_emulated(window, {sum}, kInPlaceGpu);
}

TEST(CudaInPlace, ANumberIsReadAndWrittenByOneThread) {
  const EmulatedWindow run = add_one_in_place(at::full({}, 41.0));

  ASSERT_EQ(run.kernels.size(), 1u);
  EXPECT_EQ(run.kernels[0].report.text(), "");
  EXPECT_EQ(run.inputs[0].item<double>(), 42.0);
}

TEST(CudaInPlace, FewElementsOfARowAreEachThreadsOwn) {
  const EmulatedWindow run = add_one_in_place(at::arange(5.0));

  ASSERT_EQ(run.kernels.size(), 1u);
  EXPECT_EQ(run.kernels[0].report.text(), "");
  EXPECT_TRUE(at::equal(run.inputs[0], at::arange(5.0) + 1));
}

}  // namespace
}  // namespace torch_lazy
