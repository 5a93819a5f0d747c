// What decompositions look like. That they compute what ATen does is in decompose_numeric_test.cpp.

#include "passes/decompose.h"

#include <gtest/gtest.h>

#include "graph_evaluator.h"
#include "ir/print.h"
#include "ir/verify_graph.h"

namespace torch_lazy {
namespace {

std::string decomposed(const std::string& text) {
  const auto graph = tests::parse_graph(text);
  decompose(graph, {});
  verify_graph(*graph);
  return print_graph(*graph);
}

TEST(Decompose, GivesTheLastNodeTheTypeAndEveryNodeTheOrigin) {
  EXPECT_EQ(decomposed(R"(graph(%a : Float(2, 3, strides=[1, 2], device=cpu)):
  %r : Float(2, 3, strides=[1, 2], device=cpu) = aten::silu[origin=4](%a)
  return (%r))"),
            R"(graph(%a : Float(2, 3, strides=[1, 2], device=cpu)):
  %4 : Float(requires_grad=0, device=cpu) = prim::Constant[value={1}]()
  %5 : int = prim::Constant[value=1]()
  %2 : Float(2, 3, strides=[1, 2], device=cpu) = aten::neg[origin=4](%a)
  %3 : Float(2, 3, strides=[1, 2], device=cpu) = aten::exp[origin=4](%2)
  %6 : Float(2, 3, strides=[1, 2], device=cpu) = aten::add[origin=4](%4, %3, %5)
  %7 : Float(2, 3, strides=[1, 2], device=cpu) = aten::div[origin=4](%a, %6)
  return (%7)
)");
}

TEST(Decompose, MakesResultsOnTheDeviceWhateverNumberComesLast) {
  const std::string made = decomposed(R"(graph(%a : Float(3, strides=[1], device=cuda:0),
      %key : Long(device=cpu)):
  %p : float = prim::Constant[value=0.5]()
  %r : Float(3, strides=[1], device=cuda:0) = torch_lazy::philox_bernoulli[origin=1](%a, %key, %p)
  return (%r))");

  EXPECT_EQ(made.find("strides=[1], device=cpu"), std::string::npos) << made;
}

TEST(Decompose, LeavesEmptyTensorsWholeWhoseElementsShareMemory) {
  const std::string text = R"(graph():
  %0 : int[] = prim::Constant[value=[3, 3]]()
  %1 : int[] = prim::Constant[value=[2, 1]]()
  %2 : NoneType = prim::Constant()
  %3 : Float(3, 3, strides=[2, 1], device=cpu) = aten::empty_strided(%0, %1, %2, %2, %2, %2)
  return (%3)
)";

  EXPECT_EQ(decomposed(text), text);
}

TEST(Decompose, LeavesLibraryCallsWhole) {
  const std::string text = R"(graph(%a : Float(2, 2, strides=[2, 1], device=cpu)):
  %1 : Float(2, 2, strides=[2, 1], device=cpu) = aten::mm(%a, %a)
  return (%1)
)";

  EXPECT_EQ(decomposed(text), text);
}

TEST(Decompose, TakesOperatorsOnListsApart) {
  const auto before = tests::parse_graph(R"(graph(%a : Float(2, strides=[1], device=cpu),
      %b : Float(3, strides=[1], device=cpu)):
  %scales : float[] = prim::Constant[value=[2., 3.]]()
  %xs : Tensor[] = prim::ListConstruct(%a, %b)
  %ys : Tensor[] = aten::_foreach_mul[overload="ScalarList"](%xs, %scales)
  %y : Float(2, strides=[1], device=cpu), %z : Float(3, strides=[1], device=cpu) = prim::ListUnpack(%ys)
  return (%y, %z))");
  // Lists of numbers are inserted values in recorded graphs, attributes of another kind in text.
  for (auto* node : before->nodes()) {
    if (node->kind() != c10::prim::Constant) continue;
    node->removeAttribute(c10::attr::value);
    node->ival_(c10::attr::value, std::vector<double>{2, 3});
  }
  const auto after = before->copy();
  decompose(after, {});
  verify_graph(*after);

  std::vector<std::string> names;
  for (const auto* node : after->nodes())
    if (!node->kind().is_prim()) names.push_back(operator_name(node));
  EXPECT_EQ(names, (std::vector<std::string>{"aten::mul.Tensor", "aten::mul.Tensor"}));
  const std::vector<at::Tensor> inputs{at::randn({2}), at::randn({3})};
  const auto expected = tests::evaluate(*before, inputs), actual = tests::evaluate(*after, inputs);
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(at::equal(expected[i], actual[i]));
}

}  // namespace
}  // namespace torch_lazy
