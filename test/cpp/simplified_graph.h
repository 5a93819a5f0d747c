// Graphs from text before and after the simplify pass.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "graph_evaluator.h"
#include "ir/verify_graph.h"
#include "passes/simplify.h"

namespace torch_lazy::tests {

inline constexpr const char* kMatrix = "Float(2, 3, strides=[3, 1], device=cpu)";

// "M" stands for a matrix type; the graph has inputs %a and %b of it, and the constants below.
inline std::string with_types(std::string body) {
  std::string text = R"(graph(%a : M, %b : M):
  %none : NoneType = prim::Constant()
  %false : bool = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %x0 : Float(requires_grad=0, device=cpu) = prim::Constant[value={0}]()
  %x1 : Float(requires_grad=0, device=cpu) = prim::Constant[value={1}]()
  %x2 : Float(requires_grad=0, device=cpu) = prim::Constant[value={2}]()
  %x3 : Float(requires_grad=0, device=cpu) = prim::Constant[value={3}]()
)" + body;
  for (size_t at = text.find(": M"); at != std::string::npos; at = text.find(": M"))
    text.replace(at + 2, 1, kMatrix);
  return text;
}

// exp(a), and what its columns are called.
inline const std::string kExp = R"(
  %column : int[] = prim::Constant[value=[2, 1]]()
  %columns : int[] = prim::Constant[value=[2, 2]]()
  %strides : int[] = prim::Constant[value=[3, 1]]()
  %every_second : int[] = prim::Constant[value=[3, 2]]()
  %zero : int = prim::Constant[value=0]()
  %two : int = prim::Constant[value=2]()
  %half : float = prim::Constant[value=0.5]()
  %sizes_of_row : int[] = prim::Constant[value=[2]]()
  %strides_of_row : int[] = prim::Constant[value=[3]]()
  %e : M = aten::exp(%a)
)";

// Column 0 of exp(a) is negated in place, as %s1.
inline const std::string kOneWrite = kExp + R"(
  %v0 : Float(2, 1, strides=[3, 1], device=cpu) = aten::as_strided(%e, %column, %strides, %zero)
  %w0 : Float(2, 1, strides=[1, 1], device=cpu) = aten::neg(%v0)
  %s1 : M = aten::as_strided_scatter(%e, %w0, %column, %strides, %zero)
)";

using Names = std::vector<std::string>;

// Operators of a graph, by name.
inline Names operators_of(const torch::jit::Graph& graph) {
  Names names;
  for (const auto* node : graph.nodes())
    if (!node->kind().is_prim()) names.push_back(node->kind().toUnqualString());
  return names;
}

// Bit by bit, in what they return and in what they write.
inline void expect_same_results(torch::jit::Graph& before, torch::jit::Graph& after,
                                const at::Tensor& a, const at::Tensor& b) {
  const std::vector<at::Tensor> first{a.clone(), b.clone()}, second{a.clone(), b.clone()};
  const auto expected = evaluate(before, first), actual = evaluate(after, second);
  ASSERT_EQ(expected.size(), actual.size());
  const auto bits = [](const at::Tensor& x) {
    return x.scalar_type() == at::kFloat ? x.contiguous().view(at::kInt) : x;
  };
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(at::equal(bits(expected[i]), bits(actual[i])));
    EXPECT_EQ(expected[i].strides(), actual[i].strides());
  }
  for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(at::equal(bits(first[i]), bits(second[i])));
}

struct Simplified {
  std::shared_ptr<torch::jit::Graph> before, after;

  explicit Simplified(const std::string& body, std::vector<int64_t> offsets = {0, 0})
      : before(parse_graph(with_types(body))), after(before->copy()) {
    simplify(after, offsets);
    verify_graph(*after);
  }

  Names operators() const { return operators_of(*after); }

  void expect_same_results() const {
    const at::Tensor a = at::randn({2, 3}), b = at::randn({2, 3});
    a[0][0] = -0.0;
    b[0][1] = std::nan("");
    tests::expect_same_results(*before, *after, a, b);
  }
};

}  // namespace torch_lazy::tests
