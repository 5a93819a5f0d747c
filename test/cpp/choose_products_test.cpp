// Which matrix products become oneDNN's.

#include "backend/cpu/choose_products.h"

#include <gtest/gtest.h>

#include <string>

#include "graph_evaluator.h"
#include "ir/verify_graph.h"

namespace torch_lazy {
namespace {

using tests::evaluate;
using tests::parse_graph;

// The operators of the graph whose line makes %r of %a [rows, inner] and %b [inner, columns].
struct Product {
  std::string dtype = "Float";
  std::string rows = "320", inner = "320", columns = "320";
  std::string a_strides = "320, 1", b_strides = "320, 1";
  std::string call = "aten::mm(%a, %b)";

  std::string text() const {
    return "graph(%bias : " + dtype + "(" + columns +
           ", strides=[1], device=cpu),\n      %a : " + dtype + "(" + rows + ", " + inner +
           ", strides=[" + a_strides + "], device=cpu),\n      %b : " + dtype + "(" + inner + ", " +
           columns + ", strides=[" + b_strides +
           "], device=cpu)):\n"
           "  %one : int = prim::Constant[value=1]()\n"
           "  %two : int = prim::Constant[value=2]()\n"
           "  %r : " +
           dtype + "(" + rows + ", " + columns + ", strides=[" + columns +
           ", 1], device=cpu) = " + call + "\n  return (%r)";
  }
};

std::string chosen(const Product& product) {
  const auto graph = choose_products(parse_graph(product.text()));
  verify_graph(*graph);
  std::string names;
  for (const auto* node : graph->nodes())
    if (!node->kind().is_prim()) names += node->kind().toQualString();
  return names;
}

TEST(ChooseProducts, ALargeProductIsOneDnns) {
  EXPECT_EQ(chosen({}), "torch_lazy::onednn_mm");
}

TEST(ChooseProducts, AProductAndASumAreOneDnns) {
  EXPECT_EQ(chosen({.call = "aten::addmm(%bias, %a, %b, %one, %one)"}), "torch_lazy::onednn_addmm");
}

TEST(ChooseProducts, TheValuesStayTheSame) {
  const Product product{.call = "aten::addmm(%bias, %a, %b, %one, %one)"};
  const std::vector<at::Tensor> inputs = {at::randn({320}), at::randn({320, 320}),
                                          at::randn({320, 320})};

  const at::Tensor before = evaluate(*parse_graph(product.text()), inputs).at(0);
  const at::Tensor after = evaluate(*choose_products(parse_graph(product.text())), inputs).at(0);

  EXPECT_TRUE(at::allclose(before, after, 1e-5, 1e-4));
}

TEST(ChooseProducts, OperandsMayBeTransposed) {
  EXPECT_EQ(chosen({.a_strides = "1, 320", .b_strides = "1, 320"}), "torch_lazy::onednn_mm");
}

TEST(ChooseProducts, OperandsThatWouldBeCopiedStayAtens) {
  EXPECT_EQ(chosen({.a_strides = "640, 1"}), "aten::mm");
  EXPECT_EQ(chosen({.b_strides = "0, 1"}), "aten::mm");
}

TEST(ChooseProducts, SmallAndThinProductsStayAtens) {
  EXPECT_EQ(chosen({.rows = "7"}), "aten::mm");
  EXPECT_EQ(chosen({.rows = "2",
                    .inner = "4096",
                    .columns = "4096",
                    .a_strides = "4096, 1",
                    .b_strides = "4096, 1"}),
            "aten::mm");
}

// Of eight matrices each, %b with the strides.
std::string chosen_of_batch(const std::string& b_strides) {
  const auto graph = choose_products(
      parse_graph("graph(%a : Float(8, 64, 48, strides=[3072, 48, 1], device=cpu),\n"
                  "      %b : Float(8, 48, 64, strides=[" +
                  b_strides +
                  "], device=cpu)):\n"
                  "  %r : Float(8, 64, 64, strides=[4096, 64, 1], device=cpu) = aten::bmm(%a, %b)\n"
                  "  return (%r)"));
  verify_graph(*graph);
  return graph->return_node()->input(0)->node()->kind().toQualString();
}

TEST(ChooseProducts, LargeBatchesAreOneDnnsWhereTheirMatricesFollowEachOther) {
  EXPECT_EQ(chosen_of_batch("3072, 64, 1"), "torch_lazy::onednn_bmm");
  EXPECT_EQ(chosen_of_batch("3072, 1, 48"), "torch_lazy::onednn_bmm");
  EXPECT_EQ(chosen_of_batch("64, 512, 1"), "aten::bmm");
}

TEST(ChooseProducts, AScaledProductStaysAtens) {
  EXPECT_EQ(chosen({.call = "aten::addmm(%bias, %a, %b, %one, %two)"}), "aten::addmm");
}

TEST(ChooseProducts, ProductsOfOtherDtypesStayAtens) {
  EXPECT_EQ(chosen({.dtype = "Double"}), "aten::mm");
  EXPECT_EQ(chosen({.dtype = "BFloat16"}), "aten::mm");
}

}  // namespace
}  // namespace torch_lazy
