// Graphs are equal when they compute the same, whatever their values are called.

#include "ir/graph_hash.h"

#include <gtest/gtest.h>
#include <torch/csrc/jit/ir/ir.h>

#include "ir/draw.h"
#include "ir/graph_from_tape.h"
#include "ir/verify_graph.h"
#include "tape_builder.h"

namespace torch_lazy {
namespace {

using tests::Handle;
using tests::number;
using tests::TapeBuilder;
using GraphPtr = std::shared_ptr<torch::jit::Graph>;

GraphPtr scaled(const at::Tensor& input, at::Scalar factor, const char* operation = "aten::mul") {
  TapeBuilder window;
  const Handle y = window.call(operation, "Tensor", {window.input(input), number(factor)})[0];
  return cpu_graph(window.tape, window.live({y})).graph;
}

TEST(GraphHash, IgnoresNamesAndSourceLines) {
  const GraphPtr a = scaled(at::ones({2}), 2.0), b = scaled(at::zeros({2}), 2.0);
  b->inputs()[0]->setDebugName("weights");
  b->outputs()[0]->node()->setSourceRange(
      torch::jit::SourceRange(std::make_shared<torch::jit::Source>(" ", "train.py", 3), 0, 1));

  EXPECT_TRUE(same_graph(*a, *b));
  EXPECT_EQ(hash_graph(*a), hash_graph(*b));
  EXPECT_EQ(hash_graph(*a).hex().size(), 32u);
}

TEST(GraphHash, IsThatOfACopy) {
  const GraphPtr graph = scaled(at::ones({2}), 2.0);

  EXPECT_TRUE(same_graph(*graph, *graph->copy()));
}

TEST(GraphHash, DiffersByConstantTypeStrideAndOperator) {
  const GraphPtr reference = scaled(at::ones({2, 3}), 2.0);
  const std::vector<GraphPtr> others = {scaled(at::ones({2, 3}), 3.0),
                                        scaled(at::ones({2, 3}), int64_t(2)),
                                        scaled(at::ones({3, 2}), 2.0),
                                        scaled(at::ones({3, 2}).t(), 2.0),
                                        scaled(at::ones({2, 3}, at::kDouble), 2.0),
                                        scaled(at::ones({2, 3}), 2.0, "aten::div")};

  for (const GraphPtr& other : others) {
    EXPECT_FALSE(same_graph(*reference, *other));
    EXPECT_FALSE(hash_graph(*reference) == hash_graph(*other));
  }
}

TEST(GraphHash, TellsNegativeZeroFromZero) {
  EXPECT_FALSE(same_graph(*scaled(at::ones({2}), 0.0), *scaled(at::ones({2}), -0.0)));
}

TEST(GraphHash, DiffersByTopologyAlone) {
  const auto difference = [](bool swapped) {
    TapeBuilder window;
    const Handle x = window.input(at::ones({2})), y = window.input(at::ones({2}));
    window.call("aten::add", "Tensor", {x, y, 1});
    const Handle z = window.call("aten::sub", "Tensor", {swapped ? y : x, swapped ? x : y, 1})[0];
    return cpu_graph(window.tape, window.live({z})).graph;
  };

  EXPECT_TRUE(same_graph(*difference(false), *difference(false)));
  EXPECT_FALSE(same_graph(*difference(false), *difference(true)));
}

TEST(VerifyGraph, NamesAnOperatorWithoutACompleteType) {
  const GraphPtr graph = scaled(at::ones({2}), 2.0);
  graph->outputs()[0]->setType(c10::TensorType::get());

  try {
    verify_graph(*graph);
    FAIL() << "an incomplete type was accepted";
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string(error.what()).find("%mul_0 of aten::mul.Tensor has no complete type"),
              std::string::npos)
        << error.what();
  }
}

TEST(VerifyGraph, RefusesAnUnknownOperator) {
  const GraphPtr graph = scaled(at::ones({2}), 2.0);
  torch::jit::Node* node = graph->create(c10::Symbol::fromQualString("aten::no_such_thing"), 1);
  node->output()->setType(graph->outputs()[0]->type());
  graph->insertNode(node);

  EXPECT_THROW(verify_graph(*graph), c10::Error);
}

TEST(DrawGraph, ShowsOperatorsShapesAndConstants) {
  const std::string dot = draw_graph(*scaled(at::ones({2, 3}), 2.5));

  EXPECT_EQ(dot.rfind("digraph window {", 0), 0u);
  EXPECT_NE(dot.find("<B>mul</B>"), std::string::npos);
  EXPECT_NE(dot.find("other=2.5"), std::string::npos);
  EXPECT_NE(dot.find("in0 -> op0 [label=\" Float [2, 3]\""), std::string::npos);
  EXPECT_NE(dot.find("op0 -> out0 [label=\" Float [2, 3]\""), std::string::npos);
}

}  // namespace
}  // namespace torch_lazy
