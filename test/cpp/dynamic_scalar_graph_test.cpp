// What a window with dynamic scalars looks like as TorchScript, and what it computes.

#include <gtest/gtest.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include "backend/reference/reference_backend.h"
#include "backend/registry.h"
#include "ir/graph_from_tape.h"
#include "ir/print.h"
#include "ir/verify_graph.h"
#include "run_with_torchscript.h"
#include "tape_builder.h"

namespace torch_lazy {
namespace {

using tests::Handle;
using tests::number;
using tests::run_with_torchscript;
using tests::TapeBuilder;
using Handles = TapeBuilder::Handles;

// All that can be is dynamic; places in `same` share the number of the place before.
DynamicScalars all_dynamic(const Tape& tape, const std::vector<size_t>& same = {}) {
  DynamicScalars dynamic_scalars;
  for (const uint32_t word : dynamic_scalar_words(tape)) dynamic_scalars.push_back({word, word});
  for (const size_t i : same) dynamic_scalars[i].first = dynamic_scalars[i - 1].first;
  return dynamic_scalars;
}

std::vector<at::Tensor> with_numbers(std::vector<at::Tensor> inputs,
                                     const std::vector<double>& numbers) {
  for (const double value : numbers) inputs.push_back(at::scalar_tensor(value, at::kDouble));
  return inputs;
}

std::vector<at::Tensor> run_with_reference(const WindowGraph& window,
                                           const std::vector<at::Tensor>& inputs) {
  if (registered_backends().empty()) register_reference_backend();
  Backend& backend = backend_by_name("reference");
  const auto executable = backend.compile(window.graph, {.verify = true});
  RunResult result = executable->run(inputs);
  if (result.failure) std::rethrow_exception(result.failure->error);
  return std::move(result.outputs);
}

TEST(DynamicScalarGraph, TakesNumbersAfterTheWindowsInputs) {
  TapeBuilder window;
  const Handle x = window.input(at::ones({3})), y = window.input(at::ones({3}));
  const Handle scaled = window.call("aten::mul", "Tensor", {x, number(0.5)})[0];
  const Handle sum = window.call("aten::add", "Tensor", {scaled, y, 0.5})[0];
  const Handle out = window.call("aten::addcmul", "", {sum, x, y, 2.0})[0];

  const WindowGraph graph =
      cpu_graph(window.tape, window.live({out}), all_dynamic(window.tape, {1}));

  verify_graph(*graph.graph);
  EXPECT_EQ(graph.inputs.size(), 2u);
  EXPECT_EQ(graph.numbers.size(), 2u);
  EXPECT_EQ(print_graph(*graph.graph), R"(graph(%in0 : Float(3, strides=[1], device=cpu),
      %in1 : Float(3, strides=[1], device=cpu),
      %number0 : Double(device=cpu),
      %number1 : Double(device=cpu)):
  %3 : NoneType = prim::Constant()
  %4 : int = prim::Constant[value=6]()
  %5 : bool = prim::Constant[value=0]()
  %number0_Float : Float(device=cpu) = aten::_to_copy(%number0, %4, %3, %3, %3, %5, %3)
  %mul_0 : Float(3, strides=[1], device=cpu) = aten::mul(%in0, %number0_Float)
  %9 : Scalar = aten::ScalarImplicit(%number0)
  %add_1 : Float(3, strides=[1], device=cpu) = aten::add(%mul_0, %in1, %9)
  %11 : Scalar = aten::ScalarImplicit(%number1)
  %addcmul_2 : Float(3, strides=[1], device=cpu) = aten::addcmul(%add_1, %in0, %in1, %11)
  return (%addcmul_2)
)");
  EXPECT_EQ(graph.operations.size(), 9u);
}

TEST(DynamicScalarGraph, ComputesWithTheNumbersOfTheRun) {
  TapeBuilder window;
  const Handle x = window.input(at::rand({3})), y = window.input(at::rand({3}));
  const Handle scaled = window.call("aten::mul", "Tensor", {x, number(0.1)})[0];
  const Handle sum = window.call("aten::add", "Tensor", {scaled, y, 0.2})[0];
  const WindowGraph graph = cpu_graph(window.tape, window.live({sum}), all_dynamic(window.tape));
  const at::Tensor expected = at::add(x.tensor * 0.3, y.tensor, 0.7);

  const std::vector<at::Tensor> given = with_numbers(window.inputs(), {0.3, 0.7});
  EXPECT_TRUE(at::equal(run_with_reference(graph, given).at(0), expected));
  EXPECT_TRUE(at::equal(run_with_torchscript(graph, given).at(0), expected));
}

TEST(DynamicScalarGraph, KeepsTheDtypesThatAWrappedNumberGives) {
  for (const c10::ScalarType dtype : {at::kFloat, at::kDouble, at::kLong}) {
    for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{}, std::vector<int64_t>{3}}) {
      TapeBuilder window;
      const Handle x = window.input(at::ones(sizes, dtype));
      const Handle y = window.call("aten::mul", "Tensor", {x, number(0.1)})[0];
      const WindowGraph graph = cpu_graph(window.tape, window.live({y}), all_dynamic(window.tape));
      ASSERT_EQ(graph.numbers.size(), 1u);

      const at::Tensor made = run_with_reference(graph, with_numbers(window.inputs(), {0.3})).at(0);

      EXPECT_EQ(made.scalar_type(), y.tensor.scalar_type());
      EXPECT_TRUE(at::equal(made, x.tensor * 0.3)) << dtype << sizes;
    }
  }
}

TEST(DynamicScalarGraph, InPlaceOperationsComputeInTheDtypeOfWhatTheyWrite) {
  TapeBuilder window;
  const Handle x = window.input(at::ones({}, at::kFloat));
  window.call("aten::mul_", "Tensor", {x, number(0.1)});
  const WindowGraph graph = cpu_graph(window.tape, {}, all_dynamic(window.tape));

  const std::vector<at::Tensor> given = with_numbers(window.inputs(), {0.3});
  run_with_reference(graph, given);

  EXPECT_TRUE(at::equal(given[0], at::ones({}) * 0.3));
}

TEST(DynamicScalarGraph, ListsMixNumbersAndConstants) {
  TapeBuilder window;
  const Handle x = window.input(at::ones({3})), y = window.input(at::ones({2}));
  c10::impl::GenericList scalars(c10::NumberType::get());
  scalars.push_back(0.5);
  scalars.push_back(0.25);
  window.call("aten::_foreach_mul_", "ScalarList", {Handles{x, y}, c10::IValue(scalars)});
  DynamicScalars dynamic_scalars = all_dynamic(window.tape);
  ASSERT_EQ(dynamic_scalars.size(), 2u);
  dynamic_scalars.erase(dynamic_scalars.begin());
  const WindowGraph graph = cpu_graph(window.tape, {}, dynamic_scalars);
  verify_graph(*graph.graph);

  const std::vector<at::Tensor> given = with_numbers(window.inputs(), {3});
  run_with_reference(graph, given);

  EXPECT_TRUE(at::equal(given[0], at::full({3}, 0.5)));
  EXPECT_TRUE(at::equal(given[1], at::full({2}, 3.0)));
}

}  // namespace
}  // namespace torch_lazy
