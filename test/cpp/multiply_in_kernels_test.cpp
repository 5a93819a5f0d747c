// Which matrix products become sums in kernels.

#include "passes/multiply_in_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "graph_evaluator.h"
#include "ir/verify_graph.h"
#include "passes/graph_builder.h"

namespace torch_lazy {
namespace {

using tests::evaluate;
using tests::parse_graph;

std::string list(const std::vector<int64_t>& numbers) {
  std::string text;
  for (const int64_t number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return text;
}

std::vector<int64_t> contiguous(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t d = sizes.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * sizes[d + 1];
  return strides;
}

// The line `call` makes %r of %a and %b, and of %bias, which has the result's sizes.
struct SmallProduct {
  std::vector<int64_t> a, b, result;
  bool transposed = false;  // the last two dimensions of b in memory
  std::string call = "aten::mm(%a, %b)";
  std::string dtype = "Float";
  int lanes = 16;

  std::string type(const std::vector<int64_t>& sizes, std::vector<int64_t> strides) const {
    return dtype + "(" + list(sizes) +
           (sizes.empty() ? "" : ", strides=[" + list(strides) + "], ") + "device=cpu)";
  }

  std::string text() const {
    std::vector<int64_t> b_strides = contiguous(b);
    if (transposed) {
      b_strides.back() = b[b.size() - 2];
      b_strides[b.size() - 2] = 1;
    }
    const std::vector<int64_t> strides = result.empty() ? result : contiguous(result);
    return "graph(%a : " + type(a, contiguous(a)) + ", %b : " + type(b, b_strides) +
           ", %bias : " + type(result, strides) +
           "):\n"
           "  %zero : int = prim::Constant[value=0]()\n"
           "  %one : int = prim::Constant[value=1]()\n"
           "  %half : float = prim::Constant[value=0.5]()\n"
           "  %r : " +
           type(result, strides) + " = " + call + "\n  return (%r)";
  }

  std::shared_ptr<torch::jit::Graph> multiplied() const {
    auto graph = multiply_in_kernels(parse_graph(text()), {0, 0, 0}, lanes);
    verify_graph(*graph);
    return graph;
  }

  std::string operators() const {
    std::string names;
    const auto graph = multiplied();
    for (const auto* node : graph->nodes()) {
      const std::string name = node->kind().toUnqualString();
      if (!node->kind().is_prim() && name != "as_strided") names += name + " ";
    }
    return names;
  }
};

SmallProduct matrices(int64_t rows, int64_t inner, int64_t columns) {
  return {{rows, inner}, {inner, columns}, {rows, columns}};
}

SmallProduct batch(int64_t count, int64_t rows, int64_t inner, int64_t columns) {
  return {{count, rows, inner},
          {count, inner, columns},
          {count, rows, columns},
          false,
          "aten::bmm(%a, %b)"};
}

void expect_the_same_values(const SmallProduct& product, const std::vector<at::Tensor>& inputs) {
  const at::Tensor before = evaluate(*parse_graph(product.text()), inputs).at(0);
  const at::Tensor after = evaluate(*product.multiplied(), inputs).at(0);
  EXPECT_TRUE(at::allclose(before, after, 1e-5, 1e-6)) << product.text();
}

TEST(MultiplyInKernels, ASmallProductIsASumOfProducts) {
  EXPECT_EQ(matrices(4, 8, 16).operators(), "mul sum ");
}

TEST(MultiplyInKernels, AProductWhoseRowsAreComputedTogetherIsOneUpToTheCaches) {
  EXPECT_EQ(matrices(64, 64, 64).operators(), "mul sum ");
  EXPECT_EQ(matrices(256, 256, 256).operators(), "mul sum ");
  EXPECT_EQ(matrices(512, 512, 512).operators(), "mm ");
}

TEST(MultiplyInKernels, AMatrixWhoseColumnsAreFarApartIsCopiedWhereThatPays) {
  SmallProduct product = matrices(64, 64, 64);
  product.transposed = true;
  EXPECT_EQ(product.operators(), "clone mul sum ");
}

TEST(MultiplyInKernels, AProductWithAVectorIsOneHoweverLarge) {
  SmallProduct rows = matrices(1, 4096, 4096);
  rows.transposed = true;
  EXPECT_EQ(rows.operators(), "mul sum ");
  EXPECT_EQ(matrices(4096, 4096, 1).operators(), "mul sum ");
}

TEST(MultiplyInKernels, AVectorTimesTheRowsOfALargeMatrixIsLeftToTheLibrary) {
  EXPECT_EQ(matrices(1, 4096, 4096).operators(), "mm ");
}

TEST(MultiplyInKernels, FewLanesComputeSmallProductsOnly) {
  SmallProduct product = matrices(7, 40, 40);
  product.lanes = 4;
  EXPECT_EQ(product.operators(), "mm ");
  product = matrices(7, 10, 10);
  product.lanes = 4;
  EXPECT_EQ(product.operators(), "mul sum ");
  product.transposed = true;
  EXPECT_EQ(product.operators(), "mul sum ");
}

TEST(MultiplyInKernels, EachMatrixOfABatchCostsALibraryTime) {
  EXPECT_EQ(batch(1000, 3, 3, 3).operators(), "mul sum ");
  EXPECT_EQ(batch(1000, 32, 32, 32).operators(), "bmm ");
}

TEST(MultiplyInKernels, AProductIsComputedInFloatAndRoundedOnce) {
  SmallProduct product = matrices(4, 8, 16);
  product.dtype = "BFloat16";
  EXPECT_EQ(product.operators(), "_to_copy _to_copy mul sum _to_copy ");
}

TEST(MultiplyInKernels, LibrariesAreSlowerAtIntegers) {
  SmallProduct product = matrices(7, 40, 40);
  product.lanes = 4;
  product.dtype = "Int";
  EXPECT_EQ(product.operators(), "mul sum ");
}

TEST(MultiplyInKernels, OfBFloat16ALibraryIsFasterSooner) {
  SmallProduct product = matrices(128, 128, 128);
  product.dtype = "BFloat16";
  EXPECT_EQ(product.operators(), "mm ");
  product.dtype = "Half";
  EXPECT_EQ(product.operators(), "_to_copy _to_copy mul sum _to_copy ");
}

TEST(MultiplyInKernels, AProductOfNothingIsLeftToTheLibrary) {
  EXPECT_EQ(matrices(4, 0, 4).operators(), "mm ");
}

TEST(MultiplyInKernels, AFactorOfZeroIgnoresWhatIsAdded) {
  SmallProduct product = matrices(4, 8, 16);
  product.call = "aten::addmm(%bias, %a, %b, %zero, %one)";
  EXPECT_EQ(product.operators(), "mul sum ");
  product.call = "aten::addmm(%bias, %a, %b, %one, %one)";
  EXPECT_EQ(product.operators(), "mul sum add ");
}

TEST(MultiplyInKernels, AFactorOfZeroThatIgnoresTheProductIsTheLibrarys) {
  SmallProduct product = matrices(4, 8, 16);
  product.call = "aten::addmm(%bias, %a, %b, %one, %zero)";
  EXPECT_EQ(product.operators(), "addmm ");
}

TEST(MultiplyInKernels, FewLongSumsAreLeftToALibraryThatSharesThem) {
  EXPECT_EQ(matrices(1, 1000000, 1).operators(), "mul sum ");
  EXPECT_EQ(matrices(2, 1000000, 1).operators(), "mm ");
}

TEST(MultiplyInKernels, WhatWasMeasuredToBeFasterAsALibraryCallStaysOne) {
  const auto graph = parse_graph(matrices(4, 8, 16).text());
  for (auto* node : graph->nodes())
    if (node->kind() == c10::aten::mm) node->i_(kLibraryAttribute, 1);

  const auto same = multiply_in_kernels(graph, {0, 0, 0}, /*lanes=*/16);

  EXPECT_TRUE(std::any_of(same->nodes().begin(), same->nodes().end(),
                          [](const auto* node) { return node->kind() == c10::aten::mm; }));
}

TEST(MultiplyInKernels, TheValuesStayTheSame) {
  const at::Tensor a = at::randn({4, 8}), b = at::randn({8, 16}), bias = at::randn({4, 16});
  SmallProduct product = matrices(4, 8, 16);
  expect_the_same_values(product, {a, b, bias});
  product.call = "aten::addmm(%bias, %a, %b, %half, %half)";
  expect_the_same_values(product, {a, b, bias});
  product.transposed = true;
  expect_the_same_values(product, {a, at::randn({16, 8}).t(), bias});
}

TEST(MultiplyInKernels, TheValuesOfBatchesStayTheSame) {
  const at::Tensor a = at::randn({5, 3, 4}), b = at::randn({5, 4, 6}), bias = at::randn({5, 3, 6});
  SmallProduct product = batch(5, 3, 4, 6);
  expect_the_same_values(product, {a, b, bias});
  product.call = "aten::baddbmm(%bias, %a, %b, %half, %one)";
  expect_the_same_values(product, {a, b, bias});
}

TEST(MultiplyInKernels, TheValuesOfProductsWithVectorsStayTheSame) {
  expect_the_same_values({{4, 8}, {8}, {4}, false, "aten::mv(%a, %b)"},
                         {at::randn({4, 8}), at::randn({8}), at::randn({4})});
  expect_the_same_values({{8}, {8}, {}, false, "aten::dot(%a, %b)"},
                         {at::randn({8}), at::randn({8}), at::randn({})});
}

}  // namespace
}  // namespace torch_lazy
