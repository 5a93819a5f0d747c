#include "passes/cat_in_kernels.h"

#include <gtest/gtest.h>

#include <string>

#include "graph_evaluator.h"
#include "ir/verify_graph.h"

namespace torch_lazy {
namespace {

using tests::evaluate;
using tests::parse_graph;

// Of the graph's input %a, [4, width], and of %p, which the call `made` makes of it.
std::string cat_of(const std::string& made, int64_t width, const std::string& results = "%r") {
  const std::string columns = std::to_string(width), whole = std::to_string(2 * width);
  return "graph(%a : Float(4, " + columns + ", strides=[" + columns +
         ", 1], device=cpu)):\n  %one : int = prim::Constant[value=1]()\n  %p : Float(4, " +
         columns + ", strides=[" + columns + ", 1], device=cpu) = " + made +
         "\n  %list : Tensor[] = prim::ListConstruct(%p, %a)\n  %r : Float(4, " + whole +
         ", strides=[" + whole + ", 1], device=cpu) = aten::cat(%list, %one)\n  return (" +
         results + ")";
}

std::shared_ptr<torch::jit::Graph> after(const std::string& text) {
  auto graph = cat_in_kernels(parse_graph(text), {0});
  verify_graph(*graph);
  return graph;
}

// Which of the two pieces are copies.
std::string copies(const std::string& text) {
  std::string found;
  const auto graph = after(text);
  for (const auto* node : graph->nodes())
    if (node->kind() == c10::prim::ListConstruct)
      for (const auto* piece : node->inputs())
        found += piece->node()->kind() == c10::aten::clone ? "copy " : "made ";
  return found;
}

TEST(CatInKernels, WhatIsAnInputIsCopiedAndWhatAKernelMakesForTheCatAloneIsNot) {
  EXPECT_EQ(copies(cat_of("aten::exp(%a)", 1)), "made copy ");
}

TEST(CatInKernels, WhatIsAResultTooIsCopied) {
  EXPECT_EQ(copies(cat_of("aten::exp(%a)", 1, "%r, %p")), "copy copy ");
}

TEST(CatInKernels, WhatAnotherKernelReadsTooIsNotCopied) {
  const std::string text = cat_of("aten::exp(%a)", 1, "%r, %q");
  const std::string line = "  %q : Float(4, 1, strides=[1, 1], device=cpu) = aten::neg(%p)\n";

  EXPECT_EQ(copies(std::string(text).insert(text.find("  return"), line)), "made copy ");
}

// The plan joins a cat that is a piece through a view only.
TEST(CatInKernels, ACatThatIsAPieceIsCopied) {
  std::string text = cat_of("aten::exp(%a)", 1, "%s");
  text.insert(text.find("  return"),
              "  %both : Tensor[] = prim::ListConstruct(%r, %r)\n"
              "  %s : Float(4, 4, strides=[4, 1], device=cpu) = aten::cat(%both, %one)\n");

  EXPECT_EQ(copies(text), "made copy copy copy ");
}

TEST(CatInKernels, WhatALibraryMakesIsCopied) {
  EXPECT_EQ(copies(cat_of("aten::i0(%a)", 1)), "copy copy ");
}

TEST(CatInKernels, RowsUpToEightElementsAreWrittenByKernels) {
  EXPECT_EQ(copies(cat_of("aten::exp(%a)", 4)), "made copy ");
  EXPECT_EQ(copies(cat_of("aten::exp(%a)", 5)), "made made ");
}

TEST(CatInKernels, TheValuesStayTheSame) {
  const std::string text = cat_of("aten::exp(%a)", 3, "%r, %p");
  const std::vector<at::Tensor> inputs = {at::randn({4, 3})};

  const auto results = evaluate(*after(text), inputs),
             expected = evaluate(*parse_graph(text), inputs);

  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(results[i].equal(expected[i]));
}

}  // namespace
}  // namespace torch_lazy
