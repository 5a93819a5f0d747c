// What parts of a graph a compiler of graphs is given.

#include "passes/partition.h"

#include <gtest/gtest.h>
#include <torch/csrc/jit/ir/ir.h>

#include <set>

#include "ir/node_operator.h"
#include "named_graph.h"
#include "passes/part_graph.h"

namespace torch_lazy {
namespace {

using tests::named_core_graph;

TakesNode all_but(const CoreGraph& graph, const std::set<std::string>& refused) {
  return [&graph, refused](NodeId id) {
    return refused.count(operator_name(graph.nodes[size_t(id)].node)) == 0;
  };
}

std::string parts(const std::string& text, const std::set<std::string>& refused) {
  const CoreGraph graph = named_core_graph(text);
  return to_string(graph, partition(graph, all_but(graph, refused)));
}

const std::string kHeader = R"(graph(%a : Float(4, 4, strides=[4, 1], device=cpu),
      %b : Float(4, 4, strides=[4, 1], device=cpu)):
)";
const std::string kType = "Float(4, 4, strides=[4, 1], device=cpu)";

TEST(Partition, AGraphOfWhichAllIsTakenIsOnePart) {
  EXPECT_EQ(parts(kHeader + "  %s : " + kType + " = aten::exp(%a)\n  %t : " + kType +
                      " = aten::mul(%s, %b)\n  return (%t)",
                  {}),
            "part {s, t | from a, b | makes t}\n");
}

TEST(Partition, ANodeThatIsNotTakenStandsBetweenTheParts) {
  EXPECT_EQ(parts(kHeader + "  %s : " + kType + " = aten::exp(%a)\n  %t : " + kType +
                      " = aten::sin(%s)\n  %u : " + kType + " = aten::mul(%t, %s)\n  return (%u)",
                  {"aten::sin"}),
            "part {s | from a | makes s}\n"
            "t\n"
            "part {u | from t, s | makes u}\n");
}

TEST(Partition, WhatDoesNotNeedTheNodeThatIsNotTakenJoinsTheFirstPart) {
  EXPECT_EQ(
      parts(kHeader + "  %s : " + kType + " = aten::exp(%a)\n  %t : " + kType +
                " = aten::sin(%s)\n  %u : " + kType + " = aten::exp(%b)\n  %v : " + kType +
                " = aten::mul(%u, %s)\n  %w : " + kType + " = aten::mul(%t, %v)\n  return (%w)",
            {"aten::sin"}),
      "part {s, u, v | from a, b | makes s, v}\n"
      "t\n"
      "part {w | from t, v | makes w}\n");
}

const std::string kTransposed = kHeader + R"(  %sizes : int[] = prim::Constant[value=[4, 4]]()
  %strides : int[] = prim::Constant[value=[1, 4]]()
  %zero : int = prim::Constant[value=0]()
  %s : Float(4, 4, strides=[4, 1], device=cpu) = aten::exp(%a)
  %t : Float(4, 4, strides=[1, 4], device=cpu) = aten::as_strided(%s, %sizes, %strides, %zero)
  %u : Float(4, 4, strides=[4, 1], device=cpu) = aten::mul(%t, %b)
  return (%u))";

TEST(Partition, AViewThatIsTakenIsMadeInThePart) {
  EXPECT_EQ(parts(kTransposed, {}), "part {s, u | from a, b | makes u}\n");
}

TEST(Partition, AViewThatIsNotTakenIsOfWhatAnEarlierPartMade) {
  EXPECT_EQ(parts(kTransposed, {"aten::as_strided"}),
            "part {s | from a | makes s}\n"
            "part {u | from t, b | makes u}\n");
}

TEST(Partition, IndicesThatAreCheckedAreMadeByAnEarlierPart) {
  const std::string text = R"(graph(%a : Float(4, 4, strides=[4, 1], device=cpu),
      %i : Long(2, strides=[1], device=cpu)):
  %zero : int = prim::Constant[value=0]()
  %b : Float(4, 4, strides=[4, 1], device=cpu) = aten::exp(%a)
  %j : Long(2, strides=[1], device=cpu) = aten::abs(%i)
  %r : Float(2, 4, strides=[4, 1], device=cpu) = aten::index_select(%b, %zero, %j)
  return (%r))";

  EXPECT_EQ(parts(text, {}),
            "part {b, j | from a, i | makes b, j}\n"
            "part {r | from b, j | makes r}\n");
}

TEST(Partition, ThePartsGraphNamesItsViews) {
  const CoreGraph graph = named_core_graph(kTransposed);
  const auto items = partition(graph, all_but(graph, {}));

  const auto part = graph_of_part(graph, std::get<GraphPart>(items.at(0)), {0, 0});

  part->lint();
  std::vector<std::string> operators;
  for (const torch::jit::Node* node : part->nodes())
    if (node->kind() != c10::prim::Constant) operators.push_back(operator_name(node));
  EXPECT_EQ(operators,
            (std::vector<std::string>{"aten::exp", "aten::permute", "aten::mul.Tensor"}));
  EXPECT_EQ(part->inputs().size(), 2u);
  EXPECT_EQ(part->outputs().size(), 1u);
}

}  // namespace
}  // namespace torch_lazy
