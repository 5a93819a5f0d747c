// Flash attention as products and a softmax, against ATen's own.

#include "passes/decompose_attention.h"

#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "graph_evaluator.h"
#include "ir/verify_graph.h"

namespace torch_lazy {
namespace {

using tests::evaluate;
using tests::parse_graph;

// Of 2 batches of 4 heads, 32 features, and a mask that is added.
struct Attention {
  std::string name = {};
  int64_t queries = 64, keys = 64;
  std::string dtype = "Float";
  std::string causal = "0";
  std::string dropout = "0.";
  std::string mask = "%none";
  std::string scale = "%none";
  size_t pieces = 1;

  std::string matrix(int64_t rows) const {
    return dtype + "(2, 4, " + std::to_string(rows) + ", 32, strides=[" +
           std::to_string(rows * 128) + ", 32, 128, 1], device=cpu)";
  }
  std::string sums() const {
    return "Float(2, 4, " + std::to_string(queries) + ", strides=[" + std::to_string(4 * queries) +
           ", 1, 4], device=cpu)";
  }
  std::string inputs() const {
    return "%q : " + matrix(queries) + ",\n      %k : " + matrix(keys) +
           ",\n      %v : " + matrix(keys) + ",\n      %mask : Float(" + std::to_string(queries) +
           ", " + std::to_string(keys) + ", strides=[" + std::to_string(keys) + ", 1], device=cpu)";
  }
  std::string constants() const {
    return "  %dropout : float = prim::Constant[value=" + dropout +
           "]()\n"
           "  %causal : bool = prim::Constant[value=" +
           causal +
           "]()\n"
           "  %half : float = prim::Constant[value=0.5]()\n"
           "  %none : NoneType = prim::Constant()\n";
  }
  std::string forward() const {
    return "graph(" + inputs() + "):\n" + constants() + "  %o : " + matrix(queries) +
           ", %sums : " + sums() +
           " = aten::_scaled_dot_product_flash_attention_for_cpu(%q, %k, %v, %dropout, %causal, " +
           mask + ", " + scale + ")\n  return (%o, %sums)";
  }
  std::string backward() const {
    return "graph(%g : " + matrix(queries) + ",\n      " + inputs() +
           ",\n      %o : " + matrix(queries) + ",\n      %sums : " + sums() + "):\n" +
           constants() + "  %gq : " + matrix(queries) + ", %gk : " + matrix(keys) +
           ", %gv : " + matrix(keys) +
           " = aten::_scaled_dot_product_flash_attention_for_cpu_backward(%g, %q, %k, %v, %o, "
           "%sums, %dropout, %causal, " +
           mask + ", " + scale + ")\n  return (%gq, %gk, %gv)";
  }
};

// [2, 4, rows, 32], heads inside rows.
at::Tensor matrices(int64_t rows) {
  return at::randn({2, rows, 4, 32}).transpose(1, 2);
}

// Nothing, but of one query everything.
at::Tensor mask_of(const Attention& attention) {
  at::Tensor mask = at::randn({attention.queries, attention.keys});
  mask[3].fill_(-std::numeric_limits<float>::infinity());
  return mask;
}

// Less than the scores of all cases here take, but for those of few queries.
constexpr int64_t kLeastWork = int64_t{3} << 18;

std::shared_ptr<torch::jit::Graph> decomposed_graph(const std::string& text) {
  auto graph = decompose_attention(parse_graph(text), {}, kLeastWork);
  verify_graph(*graph);
  return graph;
}

// The products that attention has become, or itself.
std::vector<std::string> products(const std::string& text) {
  const auto graph = decomposed_graph(text);
  std::vector<std::string> names;
  for (const auto* const node : graph->nodes()) {
    const std::string name = node->kind().toQualString();
    if (name == "aten::bmm" || name.find("attention") != std::string::npos) names.push_back(name);
  }
  return names;
}

class DecomposeAttention : public ::testing::TestWithParam<Attention> {};

TEST_P(DecomposeAttention, TheValuesAreFlashAttentions) {
  const Attention& attention = GetParam();
  const std::vector<at::Tensor> inputs = {matrices(attention.queries), matrices(attention.keys),
                                          matrices(attention.keys), mask_of(attention)};

  const auto before = evaluate(*parse_graph(attention.forward()), inputs);
  const auto after = evaluate(*decomposed_graph(attention.forward()), inputs);

  EXPECT_EQ(products(attention.forward()),
            (std::vector<std::string>(2 * attention.pieces, "aten::bmm")));
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(after[i].strides(), before[i].strides());
    EXPECT_TRUE(at::allclose(after[i], before[i], 1e-4, 1e-5)) << i;
  }
}

TEST_P(DecomposeAttention, TheGradientsAreFlashAttentions) {
  const Attention& attention = GetParam();
  std::vector<at::Tensor> inputs = {matrices(attention.queries), matrices(attention.keys),
                                    matrices(attention.keys), mask_of(attention)};
  for (const at::Tensor& result : evaluate(*parse_graph(attention.forward()), inputs))
    inputs.push_back(result);
  inputs.insert(inputs.begin(), matrices(attention.queries));

  const auto before = evaluate(*parse_graph(attention.backward()), inputs);
  const auto after = evaluate(*decomposed_graph(attention.backward()), inputs);

  EXPECT_EQ(products(attention.backward()),
            (std::vector<std::string>(5 * attention.pieces, "aten::bmm")));
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(after[i].strides(), before[i].strides());
    EXPECT_TRUE(at::allclose(after[i], before[i], 1e-4, 1e-5)) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Arguments, DecomposeAttention,
    ::testing::Values(Attention{.name = "Plain"}, Attention{.name = "Causal", .causal = "1"},
                      Attention{.name = "Masked", .mask = "%mask"},
                      Attention{.name = "Scaled", .scale = "%half"},
                      Attention{.name = "MoreKeys", .queries = 40, .keys = 96},
                      Attention{.name = "FewerKeys", .queries = 96, .keys = 40, .causal = "1"},
                      // Of three heads or one, in both batches.
                      Attention{.name = "InPieces",
                                .queries = 600,
                                .keys = 960,
                                .causal = "1",
                                .mask = "%mask",
                                .pieces = 2}),
    [](const auto& test) { return test.param.name; });

TEST(DecomposeAttention, StaysWholeWhereItDoesNotPay) {
  const std::vector<std::string> whole = {"aten::_scaled_dot_product_flash_attention_for_cpu"};

  EXPECT_EQ(products(Attention{.queries = 1, .keys = 4096}.forward()), whole);
  EXPECT_EQ(products(Attention{.queries = 16, .keys = 16}.forward()), whole);
  EXPECT_EQ(products(Attention{.queries = 4096, .keys = 8192}.forward()), whole)
      << "the scores take a gigabyte";
  EXPECT_EQ(products(Attention{.dtype = "Double"}.forward()), whole);
  EXPECT_EQ(products(Attention{.dropout = "0.5"}.forward()), whole);
}

}  // namespace
}  // namespace torch_lazy
