// The reference backend computes what ATen computed when the window was recorded.

#include "backend/reference/reference_backend.h"

#include <gtest/gtest.h>
#include <torch/csrc/jit/ir/ir.h>

#include <stdexcept>

#include "backend/registry.h"
#include "ir/graph_from_tape.h"
#include "ir/verify_graph.h"
#include "plan/step.h"
#include "tape_builder.h"

namespace torch_lazy {
namespace {

using tests::Handle;
using tests::kNone;
using tests::number;
using tests::TapeBuilder;
using Handles = TapeBuilder::Handles;

Backend& reference() {
  if (registered_backends().empty()) register_reference_backend();
  return backend_by_name("reference");
}

RunResult run(const WindowGraph& window, const std::vector<at::Tensor>& inputs) {
  verify_graph(*window.graph);
  const auto executable = reference().compile(window.graph, {.verify = true});
  return executable->run(inputs);
}

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& raised) {
    return raised.what();
  }
}

// Runs the window's graph, with and without verification, and its tape step by step; expects
// the tensors that ATen made while it was recorded, and the inputs written as ATen wrote them.
void expect_as_recorded(const TapeBuilder& window, const Handles& live, const Handles& inputs) {
  const WindowGraph graph = cpu_graph(window.tape, window.live(live));
  verify_graph(*graph.graph);
  for (const bool verify : {false, true}) {
    const auto executable = reference().compile(graph.graph, {.verify = verify});
    const std::vector<at::Tensor> given = window.inputs();
    const RunResult result = executable->run(given);

    if (result.failure) FAIL() << message_of(result.failure->error);
    ASSERT_EQ(result.outputs.size(), graph.output_storages.size());
    for (const Handle& handle : live) {
      const auto at = std::find(graph.output_storages.begin(), graph.output_storages.end(),
                                window.storage(handle));
      ASSERT_NE(at, graph.output_storages.end());
      const at::Tensor& root = result.outputs[size_t(at - graph.output_storages.begin())];
      const at::Tensor made = root.as_strided(handle.tensor.sizes(), handle.tensor.strides(),
                                              handle.tensor.storage_offset());
      EXPECT_TRUE(at::equal(made, handle.tensor));
    }
    for (size_t i = 0; i < inputs.size(); ++i) EXPECT_TRUE(at::equal(given[i], inputs[i].tensor));
  }

  std::vector<Step> steps;
  std::vector<InputMetadata> described;
  std::vector<uint32_t> kept;
  for (size_t i = 0; i < window.tape.size(); ++i)
    steps.push_back(step_from_tape(window.tape, i, &described, c10::kCPU));
  for (const Handle& handle : live) kept.push_back(window.value(handle));
  plan_releases(steps, kept);
  Values values(window.tape.values);
  const std::vector<at::Tensor> given = window.inputs();
  for (size_t i = 0; i < described.size(); ++i) values[described[i].value] = given[i];
  const auto failure = run_steps(steps, values, c10::kCPU);
  if (failure) FAIL() << message_of(failure->error);
  for (size_t i = 0; i < live.size(); ++i) {
    EXPECT_TRUE(at::equal(values[kept[i]], live[i].tensor));
    EXPECT_EQ(values[kept[i]].strides(), live[i].tensor.strides());
  }
}

TEST(ReferenceBackend, RunsViewsAndWritesThroughThem) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({3, 4}));
  const Handle y = window.call("aten::add", "Tensor", {x, number(1.5), 1})[0];
  const Handle row = window.call("aten::select", "int", {y, 0, 1})[0];
  window.call("aten::mul_", "Tensor", {row, number(2.0)});
  const Handle turned = window.call("aten::t", "", {y})[0];
  const Handle product = window.call("aten::mm", "", {x, turned})[0];
  window.call("aten::add_", "Tensor", {x, y, 1});

  expect_as_recorded(window, {y, row, product}, {x});
}

TEST(ReferenceBackend, WritesToAnInputAreSeenThroughAnotherViewOfIt) {
  TapeBuilder window;
  const at::Tensor base = at::randn({6});
  const Handle head = window.input(base.narrow(0, 0, 4)), tail = window.input(base.narrow(0, 2, 4));
  window.call("aten::neg_", "", {head});
  const Handle y = window.call("aten::exp", "", {tail})[0];

  expect_as_recorded(window, {y}, {head, tail});
}

TEST(ReferenceBackend, RunsOperatorsOnLists) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({2, 4})), i = window.input(at::tensor({1, 0}));
  const Handles halves = window.call("aten::split", "Tensor", {x, 2, 1});
  const Handle joined = window.call("aten::cat", "", {halves, 0})[0];
  const Handle picked = window.call("aten::index", "Tensor", {joined, Handles{{}, i}})[0];
  const Handles scaled = window.call("aten::_foreach_mul", "List", {halves, halves});
  window.call("aten::_foreach_add_", "Scalar", {scaled, 2});
  const Handles raised =
      window.call("aten::_foreach_add", "ScalarList",
                  {scaled, c10::IValue(c10::List<at::Scalar>({at::Scalar(1), at::Scalar(2.5)}))});

  expect_as_recorded(window, {joined, picked, scaled[1], raised[0]}, {x});
}

TEST(ReferenceBackend, KeepsOtherUsesOfARebounTensorAsTheyWere) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({2, 3}));
  const Handle y = window.call("aten::neg", "", {x})[0];
  window.call("aten::t_", "", {y});
  const Handle z = window.call("aten::exp", "", {y})[0];
  window.call("aten::t_", "", {x});
  const Handle sum = window.call("aten::add", "Tensor", {x, z, 1})[0];
  const std::vector<at::Tensor> given = window.inputs();

  expect_as_recorded(window, {y, z, sum}, {});
  run(cpu_graph(window.tape, {}), given);
  EXPECT_EQ(given[0].sizes(), c10::IntArrayRef({2, 3}));
}

TEST(ReferenceBackend, TakesAndReturnsUndefinedTensors) {
  TapeBuilder window;
  const Handle grad = window.input(at::ones({2, 3})), input = window.input(at::randn({2, 3}));
  const Handle mean = window.input(at::zeros({2, 1})), rstd = window.input(at::ones({2, 1}));
  const Handles made = window.call("aten::native_layer_norm_backward", "",
                                   {grad, input, std::vector<int64_t>{3}, mean, rstd, Handle{},
                                    Handle{}, c10::List<bool>({true, false, false})});

  expect_as_recorded(window, {made[0]}, {});
}

TEST(ReferenceBackend, PromotesWithWrappedNumbersAsEager) {
  TapeBuilder window;
  const Handle half = window.input(at::ones({3}, at::kHalf));
  const Handle whole = window.input(at::ones({3}, at::kInt));
  const Handle a = window.call("aten::mul", "Tensor", {half, number(2.5)})[0];
  const Handle b = window.call("aten::mul", "Tensor", {whole, number(2.5)})[0];
  ASSERT_EQ(a.tensor.scalar_type(), at::kHalf);
  ASSERT_EQ(b.tensor.scalar_type(), at::kFloat);

  expect_as_recorded(window, {a, b}, {});
}

TEST(ReferenceBackend, PassesConjugatesAsTheyWerePassed) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({2, 2}, at::kComplexFloat));
  const Handle y = window.call("aten::mm", "", {x, Handle{x.tensor, kConj}})[0];
  const Handle z = window.call("aten::exp", "", {Handle{y.tensor, kConj}})[0];

  expect_as_recorded(window, {y, z}, {x});
}

TEST(ReferenceBackend, TakesAnInputWithOrWithoutItsConjugateBit) {
  TapeBuilder window;
  const Handle x = window.input(at::conj(at::randn({2}, at::kComplexFloat)));
  const Handle y = window.call("aten::exp", "", {x})[0];
  const WindowGraph graph = cpu_graph(window.tape, window.live({y}));
  const at::Tensor unmarked = window.inputs()[0];
  ASSERT_FALSE(unmarked.is_conj());

  EXPECT_TRUE(at::equal(run(graph, {unmarked}).outputs.at(0), y.tensor));
  EXPECT_TRUE(at::equal(run(graph, {at::conj(unmarked)}).outputs.at(0), y.tensor));
}

TEST(ReferenceBackend, WritesIntoOutArguments) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({3})), out = window.input(at::empty({3}));
  window.call("aten::add", "out", {x, x, 1, out});
  const Handle y = window.call("aten::neg", "", {out})[0];

  expect_as_recorded(window, {y}, {x, out});
}

TEST(ReferenceBackend, ReportsWhichOperationFailedAndKeepsWhatCameBefore) {
  TapeBuilder window;
  const Handle table = window.input(at::randn({4, 2})), rows = window.input(at::tensor({1, 3}));
  const Handle y = window.call("aten::neg", "", {table})[0];
  const Handle picked = window.call("aten::embedding", "", {y, rows, -1, false, false})[0];
  const Handle z = window.call("aten::exp", "", {picked})[0];
  const WindowGraph graph = cpu_graph(window.tape, window.live({y, z}));

  const RunResult result = run(graph, {at::randn({4, 2}), at::tensor({1, 9})});

  ASSERT_TRUE(result.failure.has_value());
  EXPECT_EQ(graph.operations.at(result.failure->operation), 1u);
  EXPECT_NE(message_of(result.failure->error).find("out of range"), std::string::npos)
      << message_of(result.failure->error);
  EXPECT_TRUE(result.outputs.at(0).defined());
  EXPECT_FALSE(result.outputs.at(1).defined());
}

TEST(ReferenceBackend, VerifyingNamesTheOperatorWhoseResultIsNotAsRecorded) {
  TapeBuilder window;
  const Handle x = window.input(at::ones({2, 3}));
  const Handle y = window.call("aten::neg", "", {x})[0];
  const WindowGraph graph = cpu_graph(window.tape, window.live({y}));

  const RunResult result = run(graph, {at::ones({3, 2})});

  ASSERT_TRUE(result.failure.has_value());
  const std::string message = message_of(result.failure->error);
  EXPECT_NE(message.find("aten::neg made Float(3, 2, strides=[2, 1], device=cpu) for %neg_0, which "
                         "was Float(2, 3, strides=[3, 1], device=cpu)"),
            std::string::npos)
      << message;
}

TEST(ReferenceBackend, FreesValuesAfterTheirLastUse) {
  TapeBuilder window;
  const Handle x = window.input(at::ones({2}));
  const Handle a = window.call("aten::neg", "", {x})[0];
  const Handle b = window.call("aten::exp", "", {a})[0];
  window.call("aten::add", "Tensor", {b, b, 1});
  std::vector<Step> steps;
  for (size_t i = 0; i < window.tape.size(); ++i)
    steps.push_back(step_from_tape(window.tape, i, nullptr, c10::kCPU));

  plan_releases(steps, {window.value(b)});

  EXPECT_EQ(steps[0].released, std::vector<uint32_t>{window.value(x)});
  EXPECT_EQ(steps[1].released, std::vector<uint32_t>{window.value(a)});
  EXPECT_EQ(steps[2].released.size(), 1u);  // the sum, which has no reader
}

TEST(ReferenceBackend, RunsBelowAutograd) {
  TapeBuilder window;
  const Handle x = window.input(at::ones({2}));
  const Handle y = window.call("aten::neg", "", {x})[0];
  const at::Tensor given = at::ones({2}).set_requires_grad(true);

  const RunResult result = run(cpu_graph(window.tape, window.live({y})), {given});

  EXPECT_FALSE(result.outputs.at(0).requires_grad());
  EXPECT_FALSE(result.outputs.at(0).grad_fn());
}

TEST(ReferenceBackend, IsRegisteredOnceUnderItsName) {
  EXPECT_FALSE(reference().device_name().empty());
  EXPECT_THROW(register_reference_backend(), std::runtime_error);
}

}  // namespace
}  // namespace torch_lazy
