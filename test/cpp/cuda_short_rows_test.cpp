// Rows that are shorter than a warp, of which several share one; columns that are fewer; and rows
// that are so few and long that what follows their reduction is another kernel's.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "emulated_plan.h"
#include "plan/few_long_rows.h"

namespace torch_lazy {
namespace {

using tests::EmulatedWindow;
using tests::Handle;
using tests::sum;
using tests::TapeBuilder;

constexpr codegen::GpuLimits kShortRowGpu{.multiprocessors = 16,
                                          .threads_per_multiprocessor = 1024};

EmulatedWindow run_rows_as_eager(const TapeBuilder& window, const TapeBuilder::Handles& results) {
  return tests::run_emulated_as_eager(window, results, kShortRowGpu);
}

// Threads along x of the window's only kernel.
uint32_t threads_of_row(const EmulatedWindow& run) {
  EXPECT_EQ(run.kernels.size(), 1u);
  return run.kernels.empty() ? 0 : run.kernels[0].block.x;
}

TEST(CudaShortRows, HaveAsManyThreadsAsElementsOrSomeMore) {
  for (const auto& [columns, threads] :
       std::vector<std::pair<int64_t, uint32_t>>{{2, 2}, {3, 4}, {8, 8}, {9, 16}, {17, 32}}) {
    TapeBuilder window;
    const Handle x = window.input(at::randn({1001, columns}));
    const Handle total = sum(window, x, {1});

    EXPECT_EQ(threads_of_row(run_rows_as_eager(window, {total})), threads) << columns << " columns";
  }
}

TEST(CudaShortRows, OfWhatIsComputedElementByElementShareAWarpToo) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({700, 30}).narrow(1, 2, 5));
  const Handle result = window.call("aten::exp", "", {x})[0];

  EXPECT_EQ(threads_of_row(run_rows_as_eager(window, {result})), 8u);
}

TEST(CudaShortRows, AreNormalized) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({333, 10}));
  const Handle result = window.call("aten::_softmax", "", {x, 1, false})[0];

  EXPECT_EQ(threads_of_row(run_rows_as_eager(window, {result})), 16u);
}

TEST(CudaShortRows, HaveTheirGreatestElementFound) {
  TapeBuilder window;
  at::Tensor numbers = at::randint(0, 4, {515, 6}, at::kFloat);
  numbers[7][2] = std::nanf("");
  const Handle x = window.input(numbers);
  const Handle result = window.call("aten::argmax", "", {x, 1, false})[0];

  EXPECT_EQ(threads_of_row(run_rows_as_eager(window, {result})), 8u);
}

TEST(CudaShortRows, HaveTwoDimensions) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({400, 3, 5, 4}));
  const Handle total = sum(window, x, {1, 3});

  EXPECT_EQ(threads_of_row(run_rows_as_eager(window, {total})), 16u);
}

TEST(CudaFewColumns, ShareWarpsWhoseRowsAreFoldedFirst) {
  for (const auto& [columns, threads] :
       std::vector<std::pair<int64_t, uint32_t>>{{2, 2}, {3, 4}, {10, 16}, {17, 32}}) {
    TapeBuilder window;
    at::Tensor numbers = at::randn({90, columns});
    const Handle x = window.input(numbers);
    const std::vector<int64_t> rows = {0};
    const Handle total = sum(window, x, rows);
    const Handle greatest = window.call("aten::amax", "", {x, rows, false})[0];
    const Handle index = window.call("aten::argmax", "", {x, 0, false})[0];
    const Handle any = window.call("aten::any", "dim", {x, 0, false})[0];

    const EmulatedWindow run = run_rows_as_eager(window, {total, greatest, index, any});

    for (const tests::KernelReport& kernel : run.kernels)
      EXPECT_EQ(kernel.block.x, threads) << kernel.source;
  }
}

TEST(CudaFewColumns, AreOfSeveralMatrices) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({40, 90, 3}));
  const Handle total = sum(window, x, {1});

  EXPECT_EQ(threads_of_row(run_rows_as_eager(window, {total})), 4u);
}

TEST(CudaFewColumns, AreNormalizedInSeveralSweeps) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({100, 5}));
  const Handle result = window.call("aten::_softmax", "", {x, 0, false})[0];

  EXPECT_EQ(threads_of_row(run_rows_as_eager(window, {result})), 8u);
}

TEST(CudaFewColumns, MayBeLongBesideAReductionThatIsNotCut) {
  TapeBuilder window;
  const Handle x = window.input(at::rand({9001, 4}));
  const Handle total = sum(window, x, {0});
  const Handle index = window.call("aten::argmax", "", {x, 0, false})[0];

  run_rows_as_eager(window, {total, index});
}

TEST(CudaFewColumns, OfShortReductionsShareAWarp) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({500, 8, 2}));
  const Handle total = sum(window, x, {1});

  EXPECT_EQ(threads_of_row(run_rows_as_eager(window, {total})), 2u);
}

TEST(CudaShortRows, MayBeNormalizedInPlace) {
  TapeBuilder window;
  const at::Tensor numbers = at::randn({301, 6});
  const at::Tensor expected = at::softmax(numbers, 1);
  const Handle x = window.input(numbers);
  const Handle softmax = window.call("aten::_softmax", "", {x, 1, false})[0];
  const Handle written = window.call("aten::copy_", "", {x, softmax, false})[0];

  const EmulatedWindow run = tests::run_emulated(window, {written}, kShortRowGpu);

  ASSERT_EQ(run.kernels.size(), 1u);
  EXPECT_EQ(run.kernels[0].report.text(), "");
  EXPECT_TRUE(at::allclose(run.inputs[0], expected));
}

TEST(CudaShortRows, OfManyStepsAreOneLoop) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({50, 90, 4, 7}));
  const Handle total = window.call("aten::amax", "", {x, std::vector<int64_t>{1, 3}, false})[0];

  EXPECT_GT(threads_of_row(run_rows_as_eager(window, {total})), 32u);
}

TEST(CudaShortRows, OfManyStepsMayBeGathered) {
  TapeBuilder window;
  const Handle table = window.input(at::randn({30, 7}));
  const Handle index = window.input(at::randint(0, 30, {80, 5}, at::kLong));
  const Handle rows =
      window.call("aten::embedding", "", {table, index, -1, false, false})[0];  // 80 x 5 x 7
  const Handle total = sum(window, rows, {0, 2});

  run_rows_as_eager(window, {total});
}

// (x - mean) / deviation of all elements, a normalization over a whole tensor.
Handle normalized(TapeBuilder& window, const Handle& x) {
  const Handle mean = window.call("aten::mean", "", {x, c10::IValue()})[0];
  const Handle centered = window.call("aten::sub", "Tensor", {x, mean, 1})[0];
  const Handle square = window.call("aten::mul", "Tensor", {centered, centered})[0];
  const Handle variance = window.call("aten::mean", "", {square, c10::IValue()})[0];
  const Handle root = window.call("aten::sqrt", "", {variance})[0];
  return window.call("aten::div", "Tensor", {centered, root})[0];
}

TEST(CudaFewLongRows, AreNormalizedByKernelsThatFillTheDevice) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({1040, 260}));

  const EmulatedWindow run = run_rows_as_eager(window, {normalized(window, x)});

  EXPECT_EQ(run.kernels.size(), 5u) << "two sums in two kernels each, and the quotient";
}

TEST(CudaFewLongRows, MayBeColumns) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({3000, 20}));
  const Handle mean =
      window.call("aten::mean", "dim", {x, std::vector<int64_t>{0}, true, c10::IValue()})[0];
  const Handle centered = window.call("aten::sub", "Tensor", {x, mean, 1})[0];

  EXPECT_EQ(run_rows_as_eager(window, {centered}).kernels.size(), 3u);
}

// A row that lies in shared memory as far as it goes, and not at all in registers.
TEST(CudaFewLongRows, MayBeTooWideForRegisters) {
  codegen::LoweredKernel row;
  row.kernel.axis = codegen::Axis::kReduction;
  row.kernel.reduction = {codegen::Size::constant(40000)};
  row.kernel.thread_loop = {
      .packet = 4, .packets = 0, .holds_row = true, .shared_packets = 2, .has_rest = true};
  row.work_items = 1;

  EXPECT_EQ(first_behind_few_long_rows({}, {}, row), kNoId) << "it has few steps";
}

// A row of few steps, along which its only block would move more than two megabytes.
TEST(CudaFewLongRows, MayBeLongByWhatIsMadeOfThem) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({70000}));
  std::vector<Handle> values;
  Handle total = x;
  for (const char* const name : {"aten::sin", "aten::cos", "aten::tanh", "aten::erf",
                                 "aten::sigmoid", "aten::exp", "aten::expm1", "aten::atan"}) {
    values.push_back(window.call(name, "", {x})[0]);
    total = window.call("aten::add", "Tensor", {total, values.back(), 1})[0];
  }
  const Handle mean = window.call("aten::mean", "", {total, c10::IValue()})[0];
  std::vector<Handle> results;
  for (const Handle& value : values)
    results.push_back(window.call("aten::mul", "Tensor", {value, mean})[0]);

  EXPECT_EQ(run_rows_as_eager(window, results).kernels.size(), 3u)
      << "a sum in two, and the products";
}

// A block's threads share the steps of all dimensions, where the innermost would keep few busy.
TEST(CudaFewLongRows, MayHaveAShortInnermostDimension) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({6, 20, 310}).narrow(2, 3, 300));
  const Handle greatest = window.call("aten::amax", "", {x, std::vector<int64_t>{1, 2}, true})[0];
  const Handle result = window.call("aten::sub", "Tensor", {x, greatest, 1})[0];

  const EmulatedWindow run = run_rows_as_eager(window, {result});

  ASSERT_EQ(run.kernels.size(), 1u);
  EXPECT_GE(run.kernels[0].block.x, 512u);
}

TEST(CudaFewLongRows, AreNormalizedInOneKernelWhereTheyAreShort) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({60, 100}));

  EXPECT_EQ(run_rows_as_eager(window, {normalized(window, x)}).kernels.size(), 1u);
}

}  // namespace
}  // namespace torch_lazy
