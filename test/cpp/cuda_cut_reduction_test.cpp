// Reductions that too few points are left of to keep a GPU busy: cut into chunks, of which a second
// kernel combines the results.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "codegen/cut_reduction.h"
#include "emulated_plan.h"

namespace torch_lazy {
namespace {

using tests::EmulatedWindow;
using tests::Handle;
using tests::sum;
using tests::TapeBuilder;

constexpr codegen::GpuLimits kCutGpu{.multiprocessors = 16, .threads_per_multiprocessor = 1024};

bool is_cut(const EmulatedWindow& run) {
  for (const tests::KernelReport& kernel : run.kernels) {
    if (kernel.kernel.ends_with("_combine")) return true;
  }
  return false;
}

void expect_cut_and_as_eager(const TapeBuilder& window, const TapeBuilder::Handles& results) {
  EXPECT_TRUE(is_cut(tests::run_emulated_as_eager(window, results, kCutGpu)));
}

TEST(CudaCutReduction, OfColumnsWithWhatGoesBeforeAndAfter) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({900, 70}));
  const Handle bias = window.input(at::randn({70}));
  const Handle square = window.call("aten::mul", "Tensor", {x, x})[0];
  const Handle total = sum(window, square, {0});
  const Handle root = window.call("aten::sqrt", "", {total})[0];
  const Handle result = window.call("aten::add", "Tensor", {root, bias, 1})[0];

  expect_cut_and_as_eager(window, {square, result});
}

TEST(CudaCutReduction, OfColumnsByMoreThanOneReduction) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({700, 33}));
  const Handle greatest = window.call("aten::amax", "", {x, std::vector<int64_t>{0}, false})[0];
  const Handle result = window.call("aten::sub", "Tensor", {sum(window, x, {0}), greatest, 1})[0];

  expect_cut_and_as_eager(window, {greatest, result});
}

TEST(CudaCutReduction, OfFewLongRows) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({5, 40001}));

  expect_cut_and_as_eager(window, {sum(window, x, {1})});
}

TEST(CudaCutReduction, OfTwoDimensionsWhoseInnerOneIsTooShortForAChunk) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({48, 3, 700}));

  expect_cut_and_as_eager(window, {sum(window, x, {0, 2})});
}

TEST(CudaCutReduction, OfTwoDimensionsAroundAThird) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({6, 4, 9000}));

  expect_cut_and_as_eager(window, {sum(window, x, {0, 2})});
}

TEST(CudaCutReduction, OfColumnsOfEachOfSeveralMatrices) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({3, 500, 40}));

  expect_cut_and_as_eager(window, {sum(window, x, {1})});
}

TEST(CudaCutReduction, OfManyShortRows) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({9001, 3, 5}));

  expect_cut_and_as_eager(window, {sum(window, x, {0, 2})});
}

TEST(CudaCutReduction, OfAPartOfEachRow) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({7001, 30}).narrow(1, 3, 17));

  expect_cut_and_as_eager(window, {sum(window, x, {0, 1})});
}

TEST(CudaCutReduction, OfColumnsOverTwoDimensions) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({6, 701, 3, 40}));

  expect_cut_and_as_eager(window, {sum(window, x, {1, 2})});
}

// Of what lies below a diagonal: by the indices of an element in its row and in its column.
Handle squares_below(TapeBuilder& window, const Handle& x, int64_t diagonal) {
  const Handle lower = window.call("aten::tril", "", {x, diagonal})[0];
  return window.call("aten::mul", "Tensor", {lower, x})[0];
}

// The indices keep dimensions apart.
TEST(CudaCutReduction, OfWhatIsMaskedByIndex) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({1501, 40}));

  expect_cut_and_as_eager(window, {sum(window, squares_below(window, x, 3), {0, 1})});
}

// Each row has a number of its own, which keeps the dimensions apart.
TEST(CudaCutReduction, OfFewRowsThatAreLong) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({3, 40001}));
  const Handle bias = window.input(at::randn({3, 1}));
  const Handle biased = window.call("aten::add", "Tensor", {x, bias, 1})[0];

  expect_cut_and_as_eager(window, {biased, sum(window, biased, {0, 1})});
}

TEST(CudaCutReduction, OfFewRowsThatAreLongInEachOfSeveralBatches) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({5, 2, 30011}));
  const Handle bias = window.input(at::randn({2, 1}));
  const Handle biased = window.call("aten::add", "Tensor", {x, bias, 1})[0];

  expect_cut_and_as_eager(window, {sum(window, biased, {1, 2})});
}

TEST(CudaCutReduction, OfFewRowsThatAreLongAndMaskedByIndex) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({2, 7, 5000}));

  expect_cut_and_as_eager(window, {sum(window, squares_below(window, x, 2000), {0, 1, 2})});
}

// By the index along the dimension that is cut, behind one that counts chunks.
TEST(CudaCutReduction, OfFewLongRowsThatAreMaskedByIndex) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({3, 40001}));

  expect_cut_and_as_eager(window, {sum(window, squares_below(window, x, 20000), {0, 1})});
}

// A kernel that combines has no loop over the rows.
TEST(CudaCutReduction, NotWhereEachRowIsGivenTheResult) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({200, 33}));
  const Handle total = sum(window, x, {0});
  const Handle expanded =
      window.call("aten::expand", "", {total, std::vector<int64_t>{200, 33}, false})[0];
  const Handle copy = window.call("aten::clone", "", {expanded, c10::MemoryFormat::Contiguous})[0];

  const EmulatedWindow run = tests::run_emulated_as_eager(window, {total, copy}, kCutGpu);

  EXPECT_FALSE(is_cut(run));
}

TEST(CudaCutReduction, BesideANumberThatIsStoredForEachElement) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({40001}));
  const Handle one = window.input(at::randn({1}));
  const Handle expanded =
      window.call("aten::expand", "", {one, std::vector<int64_t>{40001}, false})[0];
  const Handle scaled = window.call("aten::mul", "Tensor", {expanded, tests::number(2.0)})[0];
  const Handle product = window.call("aten::mul", "Tensor", {scaled, x})[0];

  const EmulatedWindow run =
      tests::run_emulated_as_eager(window, {scaled, sum(window, product, {0})}, kCutGpu);

  EXPECT_TRUE(is_cut(run));
}

std::vector<int64_t> in_order_of_chunks(std::vector<int64_t> reduced) {
  codegen::Draft draft;
  draft.reduced.assign(reduced.size(), true);
  draft.extents = std::move(reduced);
  codegen::put_longest_outermost(draft);
  return {draft.extents.begin(), draft.extents.end()};
}

TEST(CudaCutReduction, ChunksAreOfTheLongestDimensionButTheLast) {
  EXPECT_EQ(in_order_of_chunks({16, 256, 512}), (std::vector<int64_t>{256, 16, 512}));
  EXPECT_EQ(in_order_of_chunks({16, 8, 100000}), (std::vector<int64_t>{16, 8, 100000}));
}

std::optional<codegen::Chunks> chunks_of_sum(std::vector<int64_t> reduced) {
  codegen::Draft draft;
  draft.reduced.assign(reduced.size(), true);
  draft.extents = std::move(reduced);
  codegen::Expr load{.op = codegen::Op::kLoad, .type = codegen::Type::kFloat};
  load.access.strides.assign(draft.extents.size(), codegen::Size::constant(1));
  draft.exprs.push_back(load);
  draft.exprs.push_back(
      {.op = codegen::Op::kReduceSum, .type = codegen::Type::kFloat, .arguments = {0}});
  return codegen::chunks_of_long_reduction(draft, codegen::Axis::kReduction, /*for_cuda=*/true);
}

TEST(CudaCutReduction, ChunksAreSoManyStepsThatEachIsWorthOne) {
  using codegen::Chunks;
  EXPECT_EQ(chunks_of_sum({65536, 30}), Chunks{.steps = 274}) << "of 8,220 elements";
  EXPECT_EQ(chunks_of_sum({65537, 30}), Chunks{.steps = 274}) << "the last has fewer";
  EXPECT_EQ(chunks_of_sum({1700, 512, 512}), Chunks{.by_outermost = true});
  EXPECT_EQ(chunks_of_sum({100, 50}), std::nullopt);
}

TEST(CudaCutReduction, FewOuterStepsHaveTheInnerOnesCutToo) {
  EXPECT_EQ(chunks_of_sum({4, 836325}), (codegen::Chunks{.by_outermost = true, .steps = 8256}));
  EXPECT_EQ(chunks_of_sum({30, 19, 665}), (codegen::Chunks{.by_outermost = true, .steps = 1}));
}

}  // namespace
}  // namespace torch_lazy
