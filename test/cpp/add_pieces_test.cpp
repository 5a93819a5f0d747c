// Sums of values that are zero but for a piece.

#include "passes/add_pieces.h"

#include <gtest/gtest.h>

#include <string>

#include "passes/add_pieces.h"
#include "simplified_graph.h"

namespace torch_lazy {
namespace {

using tests::Names;

// Of six columns, with what stands for the gradients of x[:, 0:2], x[:, 2:4] and x[:, 1:3].
const std::string kPieces = R"(graph(%a : P, %b : P):
  %none : NoneType = prim::Constant()
  %one : int = prim::Constant[value=1]()
  %number : float = prim::Constant[value=0.]()
  %dtype : int = prim::Constant[value=6]()
  %sizes : int[] = prim::Constant[value=[3, 6]]()
  %piece : int[] = prim::Constant[value=[3, 2]]()
  %strides : int[] = prim::Constant[value=[6, 1]]()
  %at0 : int = prim::Constant[value=0]()
  %at1 : int = prim::Constant[value=1]()
  %at2 : int = prim::Constant[value=2]()
  %z : X = aten::full(%sizes, %number, %dtype, %none, %none, %none)
  %x : P = aten::exp(%a)
  %y : P = aten::neg(%b)
  %x0 : X = aten::as_strided_scatter(%z, %x, %piece, %strides, %at0)
  %x1 : X = aten::as_strided_scatter(%z, %x, %piece, %strides, %at1)
  %y0 : X = aten::as_strided_scatter(%z, %y, %piece, %strides, %at0)
  %y2 : X = aten::as_strided_scatter(%z, %y, %piece, %strides, %at2)
)";

std::string with_types(std::string text) {
  for (const auto& [name, type] : {std::pair{": P", ": Float(3, 2, strides=[2, 1], device=cpu)"},
                                   std::pair{": X", ": Float(3, 6, strides=[6, 1], device=cpu)"}})
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 4))
      if (text[at + 3] == ' ' || text[at + 3] == ',' || text[at + 3] == ')')
        text.replace(at, 3, type);
  return text;
}

struct Added {
  std::shared_ptr<torch::jit::Graph> before, after;

  explicit Added(const std::string& body)
      : before(tests::parse_graph(with_types(kPieces + body))), after(before->copy()) {
    simplify(add_pieces(after), {0, 0});
    verify_graph(*after);
  }

  Names operators() const { return tests::operators_of(*after); }

  void expect_same_results() const {
    const at::Tensor a = at::randn({3, 2}), b = at::randn({3, 2});
    b[1][0] = 0.0;  // of which the negative is -0
    tests::expect_same_results(*before, *after, a, b);
  }
};

TEST(AddPieces, PutsThemSideBySide) {
  const Added graph(R"(
  %sum : X = aten::add(%x0, %y2, %one)
  return (%sum))");

  EXPECT_EQ(graph.operators(), (Names{"exp", "add", "neg", "add", "full", "cat"}));
  graph.expect_same_results();
}

TEST(AddPieces, AddsThoseOfTheSameRegion) {
  const Added graph(R"(
  %some : X = aten::add(%x0, %y2, %one)
  %sum : X = aten::add(%some, %y0, %one)
  return (%sum))");

  EXPECT_EQ(graph.operators(), (Names{"exp", "neg", "add", "add", "add", "full", "cat"}));
  graph.expect_same_results();
}

TEST(AddPieces, LeavesThoseThatOverlap) {
  const Added graph(R"(
  %sum : X = aten::add(%x1, %y2, %one)
  return (%sum))");

  EXPECT_EQ(graph.operators(),
            (Names{"full", "exp", "neg", "as_strided_scatter", "as_strided_scatter", "add"}));
}

TEST(AddPieces, LeavesSumsThatAreReadBetween) {
  const Added graph(R"(
  %some : X = aten::add(%x0, %y2, %one)
  %read : X = aten::tanh(%some)
  %sum : X = aten::add(%some, %y0, %one)
  return (%sum, %read))");

  EXPECT_EQ(graph.operators(), (Names{"full", "exp", "add", "neg", "add", "as_strided_scatter",
                                      "full", "cat", "tanh", "add"}));
  graph.expect_same_results();
}

TEST(AddPieces, AddsThemBeforeWhatIsNoPiece) {
  const Added graph(R"(
  %some : X = aten::add(%x0, %y2, %one)
  %whole : X = aten::full(%sizes, %one, %dtype, %none, %none, %none)
  %sum : X = aten::add(%whole, %some, %one)
  return (%sum))");

  graph.expect_same_results();
  for (const std::string& name : graph.operators()) EXPECT_NE(name, "as_strided_scatter");
}

}  // namespace
}  // namespace torch_lazy
