// What recorded windows look like as TorchScript.

#include "ir/graph_from_tape.h"

#include <Python.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/ir/alias_analysis.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include "ir/node_operator.h"
#include "ir/print.h"
#include "ir/verify_graph.h"
#include "run_with_torchscript.h"
#include "tape/python_frames.h"
#include "tape_builder.h"

namespace torch_lazy {
namespace {

using tests::Handle;
using tests::kNone;
using tests::number;
using tests::run_with_torchscript;
using tests::TapeBuilder;
using Handles = TapeBuilder::Handles;

WindowGraph graph_of(const TapeBuilder& window, const Handles& live) {
  WindowGraph result = cpu_graph(window.tape, window.live(live));
  verify_graph(*result.graph);
  return result;
}

TEST(GraphFromTape, PrintsOperatorsWithTypesAndOutputs) {
  TapeBuilder window;
  const Handle x = window.input(at::ones({2, 3}));
  const Handle y = window.call("aten::add", "Tensor", {x, number(int64_t(2)), 1})[0];
  const Handle z = window.call("aten::t", "", {y})[0];
  const Handle m = window.call("aten::mm", "", {x, z})[0];

  const WindowGraph graph = graph_of(window, {m});

  EXPECT_EQ(print_graph(*graph.graph), R"(graph(%in0 : Float(2, 3, strides=[3, 1], device=cpu)):
  %1 : Long(requires_grad=0, device=cpu) = prim::Constant[value={2}]()
  %2 : int = prim::Constant[value=1]()
  %add_0 : Float(2, 3, strides=[3, 1], device=cpu) = aten::add(%in0, %1, %2)
  %t_1 : Float(3, 2, strides=[1, 3], device=cpu) = aten::t(%add_0)
  %mm_2 : Float(2, 2, strides=[2, 1], device=cpu) = aten::mm(%in0, %t_1)
  return (%mm_2)
)");
  EXPECT_EQ(graph.output_storages, std::vector<uint32_t>{window.storage(m)});
  EXPECT_EQ(graph.operations, (std::vector<uint32_t>{0, 0, 0, 1, 2}));
  ASSERT_EQ(graph.inputs.size(), 1u);
}

TEST(GraphFromTape, ChoosesTheRecordedOverload) {
  TapeBuilder window;
  const Handle x = window.input(at::ones({2, 3}));
  window.call("aten::sum", "", {x, kNone});
  window.call("aten::sum", "dim_IntList", {x, std::vector<int64_t>{1}, true, kNone});
  window.call("aten::max", "dim", {x, 1, false});
  window.call("aten::max", "", {x});

  const WindowGraph graph = graph_of(window, {});

  std::vector<std::string> names;
  for (const auto* node : graph.graph->nodes())
    if (!node->kind().is_prim()) names.push_back(operator_name(node));
  EXPECT_EQ(names, (std::vector<std::string>{"aten::sum", "aten::sum.dim_IntList", "aten::max.dim",
                                             "aten::max"}));
}

TEST(GraphFromTape, LaterUsesReadTheResultOfAnInPlaceOperation) {
  TapeBuilder window;
  const Handle x = window.input(at::ones({2}));
  const Handle y = window.call("aten::neg", "", {x})[0];
  window.call("aten::relu_", "", {y});
  const Handle z = window.call("aten::neg", "", {y})[0];

  const WindowGraph graph = graph_of(window, {y, z});

  EXPECT_EQ(print_graph(*graph.graph), R"(graph(%in0 : Float(2, strides=[1], device=cpu)):
  %neg_0 : Float(2, strides=[1], device=cpu) = aten::neg(%in0)
  %relu_1 : Float(2, strides=[1], device=cpu) = aten::relu_(%neg_0)
  %neg_2 : Float(2, strides=[1], device=cpu) = aten::neg(%relu_1)
  return (%relu_1, %neg_2)
)");
  torch::jit::AliasDb aliases(graph.graph);
  EXPECT_TRUE(
      aliases.mayAlias(graph.graph->outputs()[0], graph.graph->outputs()[0]->node()->input(0)));
  EXPECT_TRUE(aliases.hasWriters(graph.graph->outputs()[0]));
}

TEST(GraphFromTape, AnOperationThatRebindsItsArgumentGetsAnAliasOfIt) {
  TapeBuilder window;
  const Handle x = window.input(at::ones({2, 3}));
  window.call("aten::t_", "", {x});
  const Handle y = window.call("aten::relu", "", {x})[0];

  const WindowGraph graph = graph_of(window, {y});

  EXPECT_EQ(print_graph(*graph.graph), R"(graph(%in0 : Float(2, 3, strides=[3, 1], device=cpu)):
  %in0_alias_0 : Float(2, 3, strides=[3, 1], device=cpu) = aten::alias(%in0)
  %t_0 : Float(3, 2, strides=[1, 3], device=cpu) = aten::t_(%in0_alias_0)
  %relu_1 : Float(3, 2, strides=[1, 3], device=cpu) = aten::relu(%t_0)
  return (%relu_1)
)");
}

TEST(GraphFromTape, ListsAreMadeAndTakenApart) {
  TapeBuilder window;
  const Handle x = window.input(at::ones({2, 4})), i = window.input(at::tensor({1, 0}, at::kLong));
  const Handles halves = window.call("aten::split", "Tensor", {x, 2, 1});
  const Handle joined = window.call("aten::cat", "", {halves, 0})[0];
  const Handle picked = window.call("aten::index", "Tensor", {joined, Handles{{}, i}})[0];

  const WindowGraph graph = graph_of(window, {joined, picked});

  EXPECT_EQ(print_graph(*graph.graph), R"(graph(%in0 : Float(2, 4, strides=[4, 1], device=cpu),
      %in1 : Long(2, strides=[1], device=cpu)):
  %1 : int = prim::Constant[value=2]()
  %2 : int = prim::Constant[value=1]()
  %split_0_list : Tensor[] = aten::split(%in0, %1, %2)
  %split_0 : Float(2, 2, strides=[4, 1], device=cpu), %split_0_1 : Float(2, 2, strides=[4, 1], device=cpu) = prim::ListUnpack(%split_0_list)
  %6 : Tensor[] = prim::ListConstruct(%split_0, %split_0_1)
  %7 : int = prim::Constant[value=0]()
  %cat_1 : Float(4, 2, strides=[2, 1], device=cpu) = aten::cat(%6, %7)
  %10 : NoneType = prim::Constant()
  %11 : Tensor?[] = prim::ListConstruct(%10, %in1)
  %index_2 : Float(4, 2, strides=[2, 1], device=cpu) = aten::index(%cat_1, %11)
  return (%cat_1, %index_2)
)");
}

// The location of a call on line 3, column 8 of a Python file "train.py".
LocationId location_in_python() {
  static LocationId found = kNoLocation;
  static PyMethodDef record = {"record",
                               [](PyObject*, PyObject*) -> PyObject* {
                                 found = current_location();
                                 Py_RETURN_NONE;
                               },
                               METH_NOARGS, nullptr};
  if (!Py_IsInitialized()) Py_InitializeEx(0);
  PyObject* globals = PyDict_New();
  PyObject* function = PyCFunction_New(&record, nullptr);
  PyDict_SetItemString(globals, "record", function);
  PyObject* code = Py_CompileString("\nif True:\n    x = record()\n", "train.py", Py_file_input);
  PyObject* result = PyEval_EvalCode(code, globals, globals);
  EXPECT_NE(result, nullptr);
  for (PyObject* object : {result, code, function, globals}) Py_XDECREF(object);
  return found;
}

TEST(GraphFromTape, ShowsTheRecordingLine) {
  TapeBuilder window;
  const Handle x = window.input(at::ones({2}));
  const Handle y = window.call("aten::relu", "", {x}, location_in_python())[0];
  const Handle z = window.call("aten::neg", "", {y})[0];

  const WindowGraph graph = graph_of(window, {y, z});

  EXPECT_NE(print_graph(*graph.graph).find("aten::relu(%in0) # train.py:3:8\n"), std::string::npos)
      << print_graph(*graph.graph);
  EXPECT_EQ(recorded_at(*graph.graph->outputs()[0]->node()), "train.py:3:8");
  EXPECT_EQ(recorded_at(*graph.graph->outputs()[1]->node()), "");
}

TEST(GraphFromTape, AConjugateThatWasPassedBecomesANode) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({2, 2}, at::kComplexFloat));
  const Handle y = window.call("aten::mm", "", {x, Handle{x.tensor, kConj}})[0];

  const WindowGraph graph = graph_of(window, {y});

  EXPECT_NE(print_graph(*graph.graph).find("aten::_conj(%in0)"), std::string::npos);
  const auto outputs = run_with_torchscript(graph, window.inputs());
  EXPECT_TRUE(at::allclose(outputs.at(0), y.tensor));
}

TEST(GraphFromTape, AnUndefinedTensorPassesThroughTorchScript) {
  TapeBuilder window;
  const Handle grad = window.input(at::ones({2, 3})), input = window.input(at::randn({2, 3}));
  const Handle mean = window.input(at::zeros({2, 1})), rstd = window.input(at::ones({2, 1}));
  const auto outputs = window.call("aten::native_layer_norm_backward", "",
                                   {grad, input, std::vector<int64_t>{3}, mean, rstd, Handle{},
                                    Handle{}, c10::List<bool>({true, false, false})});
  ASSERT_FALSE(outputs[1].tensor.defined());

  const WindowGraph graph = graph_of(window, {outputs[0]});

  EXPECT_TRUE(at::equal(run_with_torchscript(graph, window.inputs()).at(0), outputs[0].tensor));
}

TEST(GraphFromTape, AnUndefinedTensorForARequiredArgumentIsAutogradZero) {
  TapeBuilder window;
  const Handle x = window.input(at::ones({2}));
  const OperatorInfo& info = operator_info("aten::mul", "Tensor");
  window.call("aten::relu", "", {x});
  window.tape.begin(&info, kNoLocation);
  window.tape.word(make_word(Tag::kValue, window.value(x)));
  window.tape.word(make_word(Tag::kUndefined));
  window.tape.output({});
  window.tape.end();

  const WindowGraph graph = graph_of(window, {});

  EXPECT_NE(print_graph(*graph.graph).find("prim::AutogradZero()"), std::string::npos);
}

TEST(GraphFromTape, ABoolGivenAsScalarStaysABool) {
  TapeBuilder window;
  const Handle x =
      window.call("aten::full", "", {std::vector<int64_t>{2}, true, kNone, kNone, kNone, kNone})[0];
  ASSERT_EQ(x.tensor.scalar_type(), at::kBool);

  const WindowGraph graph = graph_of(window, {x});

  const at::Tensor made = run_with_torchscript(graph, {}).at(0);
  EXPECT_EQ(made.scalar_type(), at::kBool);
  EXPECT_TRUE(at::equal(made, x.tensor));
}

TEST(GraphFromTape, TheDeviceLazyBecomesTheBackends) {
  TapeBuilder window;
  const auto zeros = [&](c10::Device device) {
    return window.call("aten::zeros", "",
                       {std::vector<int64_t>{2}, kNone, kNone, c10::IValue(device), kNone})[0];
  };
  const Handle x = zeros(c10::kCPU);
  // The same words with the device as a script names it.
  std::vector<uint64_t> words = window.tape.words(0).vec();
  Tape tape;
  tape.begin(window.tape.entry(0).op, kNoLocation);
  for (size_t i = 1; i < words.size(); ++i)
    tape.word(word_tag(words[i]) == Tag::kDevice
                  ? make_word(Tag::kDevice, uint32_t(c10::DeviceType::Lazy) << 8)
                  : words[i]);
  tape.output(decode_outputs(window.tape.outputs(0))[0]);
  tape.end();
  tape.values = tape.storages = 1;

  const WindowGraph graph = cpu_graph(tape, {true});

  EXPECT_EQ(print_graph(*graph.graph).find("lazy"), std::string::npos);
  EXPECT_TRUE(at::equal(run_with_torchscript(graph, {}).at(0), x.tensor));
}

TEST(GraphFromTape, StoragesOfInputsAreNoOutputs) {
  TapeBuilder window;
  const Handle x = window.input(at::ones({2}));
  window.call("aten::neg_", "", {x});

  EXPECT_TRUE(graph_of(window, {x}).output_storages.empty());
}

}  // namespace
}  // namespace torch_lazy
