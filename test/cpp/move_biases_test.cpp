// Which matrix products lose their bias to the kernels that read them.

#include "passes/move_biases.h"

#include <gtest/gtest.h>

#include <string>

#include "graph_evaluator.h"
#include "ir/verify_graph.h"

namespace torch_lazy {
namespace {

using tests::evaluate;
using tests::parse_graph;

// `reader` makes %r of %p, the product.
std::string text_of(const std::string& reader, const std::string& dtype = "Float") {
  std::string text = R"(graph(%bias : T(4, strides=[1], device=cpu),
      %a : T(3, 5, strides=[5, 1], device=cpu),
      %b : T(5, 4, strides=[4, 1], device=cpu)):
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %p : T(3, 4, strides=[4, 1], device=cpu) = aten::addmm(%bias, %a, %b, %one, %one)
)" + reader + "\n  return (%r)";
  for (size_t at; (at = text.find("T(")) != std::string::npos;) text.replace(at, 1, dtype);
  return text;
}

const std::string kExpOfParts = "  %r : T(3, 4, strides=[4, 1], device=cpu) = aten::exp(%p)";

std::string operators_of(const torch::jit::Graph& graph) {
  std::string names;
  for (const auto* node : graph.nodes())
    if (!node->kind().is_prim()) names += std::string(node->kind().toUnqualString()) + " ";
  return names;
}

std::string moved(const std::string& text) {
  const auto graph = move_biases(parse_graph(text));
  verify_graph(*graph);
  return operators_of(*graph);
}

TEST(MoveBiases, AKernelThatReadsTheProductAddsTheBias) {
  EXPECT_EQ(moved(text_of(kExpOfParts)), "mm add exp ");
}

TEST(MoveBiases, TheValuesStayTheSame) {
  const std::string text = text_of(kExpOfParts);
  // Sixteenths, whose products and sums are exact.
  const std::vector<at::Tensor> inputs = {at::arange(4, at::kFloat) / 16,
                                          at::arange(15, at::kFloat).view({3, 5}) / 16,
                                          at::arange(20, at::kFloat).view({5, 4}) / 16};

  const at::Tensor before = evaluate(*parse_graph(text), inputs).at(0);
  const at::Tensor after = evaluate(*move_biases(parse_graph(text)), inputs).at(0);

  EXPECT_TRUE(at::equal(before, after));
}

TEST(MoveBiases, AKernelMayReadItThroughAView) {
  EXPECT_EQ(moved(text_of("  %zero : int = prim::Constant[value=0]()\n"
                          "  %sizes : int[] = prim::Constant[value=[12]]()\n"
                          "  %strides : int[] = prim::Constant[value=[1]]()\n"
                          "  %v : T(12, strides=[1], device=cpu) = "
                          "aten::as_strided(%p, %sizes, %strides, %zero)\n"
                          "  %r : T(12, strides=[1], device=cpu) = aten::exp(%v)")),
            "mm add as_strided exp ");
}

// As a loss reads the scores of its targets, beside the kernel that reads all of them.
TEST(MoveBiases, AGatherOfAFewElementsReadsTheProduct) {
  const std::string text = R"(graph(%bias : Float(16, strides=[1], device=cpu),
      %a : Float(3, 5, strides=[5, 1], device=cpu),
      %b : Float(5, 16, strides=[16, 1], device=cpu),
      %i : Long(3, 1, strides=[1, 1], device=cpu)):
  %one : int = prim::Constant[value=1]()
  %no : bool = prim::Constant[value=0]()
  %p : Float(3, 16, strides=[16, 1], device=cpu) = aten::addmm(%bias, %a, %b, %one, %one)
  %e : Float(3, 16, strides=[16, 1], device=cpu) = aten::exp(%p)
  %r : Float(3, 1, strides=[1, 1], device=cpu) = aten::gather(%p, %one, %i, %no)
  return (%e, %r))";
  // Small whole numbers, whose products and sums are exact.
  const std::vector<at::Tensor> inputs = {
      at::arange(16, at::kFloat), at::arange(15, at::kFloat).view({3, 5}),
      at::arange(80, at::kFloat).view({5, 16}), at::tensor({3, 15, 0}).view({3, 1})};

  const std::vector<int64_t> offsets(inputs.size());
  const auto graph = move_biases(parse_graph(text), offsets);

  EXPECT_EQ(operators_of(*graph), "mm add exp gather as_strided gather add ");
  const at::Tensor before = evaluate(*parse_graph(text), inputs).at(1);
  const at::Tensor after = evaluate(*graph, inputs).at(1);
  EXPECT_TRUE(at::equal(before, after));
}

TEST(MoveBiases, AProductThatALibraryCallReadsKeepsItsBias) {
  EXPECT_EQ(moved(text_of("  %c : T(3, 4, strides=[4, 1], device=cpu) = aten::exp(%p)\n"
                          "  %t : T(4, 3, strides=[1, 4], device=cpu) = aten::t(%p)\n"
                          "  %r : T(3, 3, strides=[3, 1], device=cpu) = aten::mm(%c, %t)")),
            "addmm exp t mm ");
}

TEST(MoveBiases, AResultOfTheGraphKeepsItsBias) {
  std::string text = text_of(kExpOfParts);
  text.replace(text.find("return (%r)"), 11, "return (%r, %p)");

  EXPECT_EQ(moved(text), "addmm exp ");
}

TEST(MoveBiases, AScaledProductStaysWhole) {
  std::string text = text_of(kExpOfParts);
  text.replace(text.find("%one, %one)"), 11, "%two, %one)");

  EXPECT_EQ(moved(text), "addmm exp ");
}

TEST(MoveBiases, NarrowTypesAreRoundedOnce) {
  EXPECT_EQ(moved(text_of(kExpOfParts, "BFloat16")), "addmm exp ");
  EXPECT_EQ(moved(text_of(kExpOfParts, "Double")), "mm add exp ");
}

}  // namespace
}  // namespace torch_lazy
