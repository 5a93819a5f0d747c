// What kernels for CUDA round to bfloat16 and half has the bits of eager's, whether a packet's
// store rounds it or the value is computed with; and so has what they cast to bytes.

#include <gtest/gtest.h>

#include <limits>

#include "emulated_plan.h"

namespace torch_lazy {
namespace {

using tests::EmulatedWindow;
using tests::Handle;
using tests::number;
using tests::TapeBuilder;

constexpr codegen::GpuLimits kRoundingGpu{.multiprocessors = 4, .threads_per_multiprocessor = 1024};

class CudaRounding : public ::testing::TestWithParam<c10::ScalarType> {
 protected:
  // Floats of all sizes that the type has, and beyond, of which many lie between two of the type's;
  // in an odd number, so that the last packet is no whole one.
  static at::Tensor floats() {
    at::manual_seed(1);
    const at::Tensor random = at::randn({2047}) * at::exp2(at::randint(-30, 20, {2047}));
    const at::Tensor halfway =
        1 + (2 * at::arange(2048) + 1) * (GetParam() == at::kHalf ? 0x1p-12 : 0x1p-9);
    const float infinity = std::numeric_limits<float>::infinity();
    return at::cat(
        {random, halfway, at::tensor({0.0f, -0.0f, infinity, -infinity, 3e38f, 65520.0f})});
  }

  static Handle rounded(TapeBuilder& window, const Handle& x) {
    return window.call(
        "aten::_to_copy", "",
        {x, GetParam(), c10::IValue(), c10::IValue(), c10::IValue(), false, c10::IValue()})[0];
  }

  static void expect_bits_of_eager(const TapeBuilder& window, const Handle& result) {
    const EmulatedWindow run = tests::run_emulated(window, {result}, kRoundingGpu);

    ASSERT_EQ(run.outputs.size(), 1u);
    EXPECT_TRUE(at::equal(run.outputs[0].view(at::kShort), result.tensor.view(at::kShort)));
    for (const tests::KernelReport& kernel : run.kernels) {
      EXPECT_EQ(kernel.report.text(), "") << kernel.source;
    }
  }
};

TEST_P(CudaRounding, OfWhatIsStored) {
  TapeBuilder window;
  expect_bits_of_eager(window, rounded(window, window.input(floats())));
}

TEST_P(CudaRounding, OfWhatIsComputedWith) {
  TapeBuilder window;
  const Handle x = rounded(window, window.input(floats()));
  expect_bits_of_eager(window, window.call("aten::mul", "Tensor", {x, number(1.1)})[0]);
}

TEST_P(CudaRounding, ANumberThatIsNoneStaysNone) {
  TapeBuilder window;
  const at::Tensor none = at::full({512}, std::numeric_limits<float>::quiet_NaN());
  const Handle result = rounded(window, window.input(none));

  const EmulatedWindow run = tests::run_emulated(window, {result}, kRoundingGpu);

  ASSERT_EQ(run.outputs.size(), 1u);
  EXPECT_TRUE(run.outputs[0].isnan().all().item<bool>());
}

class CudaCastToBytes : public ::testing::TestWithParam<c10::ScalarType> {};

TEST_P(CudaCastToBytes, OfWhatIsOutOfRangeWraps) {
  TapeBuilder window;
  const Handle x =
      window.input(at::tensor({-1.0, -2.5, -300.0, 3.75, 256.0, 70000.0}).to(GetParam()));
  const Handle doubled = window.call("aten::mul", "Tensor", {x, number(2)})[0];
  const Handle bytes = window.call(
      "aten::_to_copy", "",
      {doubled, at::kByte, c10::IValue(), c10::IValue(), c10::IValue(), false, c10::IValue()})[0];

  const EmulatedWindow run = tests::run_emulated(window, {bytes}, kRoundingGpu);

  ASSERT_EQ(run.outputs.size(), 1u);
  EXPECT_TRUE(at::equal(run.outputs[0], at::tensor({254, 251, 168, 7, 0, 224}, at::kByte)));
}

INSTANTIATE_TEST_SUITE_P(Types, CudaCastToBytes, ::testing::Values(at::kFloat, at::kDouble));

INSTANTIATE_TEST_SUITE_P(Types, CudaRounding, ::testing::Values(at::kBFloat16, at::kHalf));

}  // namespace
}  // namespace torch_lazy
