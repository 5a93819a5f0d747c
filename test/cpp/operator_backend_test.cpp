#include "backend/operators/operator_backend.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "tape_builder.h"

namespace torch_lazy {
namespace {

using tests::Handle;
using tests::TapeBuilder;

bool is_contiguous(const TensorDescription& tensor) {
  int64_t expected = 1;
  for (size_t i = tensor.sizes.size(); i-- > 0;) {
    if (tensor.sizes[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.sizes[i];
  }
  return true;
}

int64_t elements(const TensorDescription& tensor) {
  int64_t count = 1;
  for (const int64_t size : tensor.sizes) count *= size;
  return count;
}

// a * b of floats that lie alike; `performed` notes each run.
MakeCommand multiply(std::vector<std::string>& performed) {
  return [&performed](const OperatorCall& call) -> DeviceCommand {
    for (const OperatorArgument& argument : call.arguments)
      if (argument.tensors.size() != 1 || !is_contiguous(argument.tensors[0]) ||
          argument.tensors[0].sizes != call.results[0].sizes)
        return {};
    return [&performed, count = elements(call.results[0])](c10::ArrayRef<void*> addresses) {
      performed.emplace_back("mul");
      const auto *a = static_cast<const float*>(addresses[0]),
                 *b = static_cast<const float*>(addresses[1]);
      auto* result = static_cast<float*>(addresses[2]);
      for (int64_t i = 0; i < count; ++i) result[i] = a[i] * b[i];
    };
  };
}

struct CompiledWindow {
  std::shared_ptr<Executable> executable;
  std::vector<at::Tensor> outputs(const std::vector<at::Tensor>& inputs) const {
    const RunResult result = executable->run(inputs);
    if (result.failure) std::rethrow_exception(result.failure->error);
    return result.outputs;
  }
};

CompiledWindow compile(OperatorBackend& backend, const TapeBuilder& window,
                       const std::vector<Handle>& live) {
  const WindowGraph graph = cpu_graph(window.tape, window.live(live));
  CompileOptions options;
  for (const WindowInput& input : graph.inputs)
    options.inputs.push_back({input.storage, input.storage_bytes, input.offset, input.cpu});
  return {backend.compile(graph.graph, options)};
}

TEST(OperatorBackendTest, WhatTheTableHasIsItsCommandAndTheRestIsATen) {
  std::vector<std::string> performed;
  OperatorBackend backend(c10::DeviceType::CPU, "test",
                          {{"aten::mul.Tensor", multiply(performed)}});
  TapeBuilder window;
  const Handle x = window.input(at::randn({3, 4})), y = window.input(at::randn({3, 4}));
  const Handle product = window.call("aten::mul", "Tensor", {x, y})[0];
  const Handle sine = window.call("aten::sin", "", {product})[0];

  const auto outputs = compile(backend, window, {sine}).outputs(window.inputs());

  EXPECT_TRUE(at::equal(outputs.at(0), sine.tensor));
  EXPECT_EQ(performed, std::vector<std::string>{"mul"});
  EXPECT_GE(metrics().fallbacks.counts().at("aten::sin by ATen"), 1);
}

TEST(OperatorBackendTest, ACallThatTheTableRefusesIsATens) {
  std::vector<std::string> performed;
  OperatorBackend backend(c10::DeviceType::CPU, "test",
                          {{"aten::mul.Tensor", multiply(performed)}});
  TapeBuilder window;
  const Handle x = window.input(at::randn({3, 4})), row = window.input(at::randn({4}));
  const Handle product = window.call("aten::mul", "Tensor", {x, row})[0];

  const auto outputs = compile(backend, window, {product}).outputs(window.inputs());

  EXPECT_TRUE(at::equal(outputs.at(0), product.tensor));
  EXPECT_TRUE(performed.empty());
}

TEST(OperatorBackendTest, ASumThatATenWouldWidenKeepsItsDtype) {
  OperatorBackend backend(c10::DeviceType::CPU, "test", {});
  TapeBuilder window;
  const Handle x = window.input(at::full({3, 4}, 100, at::kByte));
  const std::vector<int64_t> rows{0};
  const Handle sum =
      window.call("aten::sum", "dim_IntList", {x, rows, false, int64_t(at::kByte)})[0];
  const Handle product = window.call("aten::prod", "dim_int", {x, 0, false, int64_t(at::kByte)})[0];

  const auto outputs = compile(backend, window, {sum, product}).outputs(window.inputs());

  EXPECT_TRUE(at::equal(outputs.at(0), sum.tensor));
  EXPECT_TRUE(at::equal(outputs.at(1), product.tensor));
}

TEST(OperatorBackendTest, ACopyIntoKeptMemoryIsTheTablesWhereItHasCopies) {
  size_t copies = 0;
  const MakeCommand copy = [&copies](const OperatorCall& call) -> DeviceCommand {
    return [&copies, bytes = elements(call.results[0]) * 4](c10::ArrayRef<void*> addresses) {
      ++copies;
      EXPECT_EQ(addresses[0], addresses[2]);
      std::memcpy(addresses[2], addresses[1], size_t(bytes));
    };
  };
  OperatorBackend backend(c10::DeviceType::CPU, "test", {{"aten::copy_", copy}});
  TapeBuilder window;
  const Handle x = window.input(at::randn({3, 4}));
  window.call("aten::sin_", "", {x});

  const std::vector<at::Tensor> inputs = window.inputs();
  compile(backend, window, {}).outputs(inputs);

  EXPECT_TRUE(at::equal(inputs.at(0), x.tensor));
  EXPECT_EQ(copies, 1);
}

TEST(OperatorBackendTest, AWriteToAnInputIsACopyAtTheEnd) {
  std::vector<std::string> performed;
  OperatorBackend backend(c10::DeviceType::CPU, "test",
                          {{"aten::mul.Tensor", multiply(performed)}});
  TapeBuilder window;
  const Handle x = window.input(at::randn({3, 4})), y = window.input(at::randn({3, 4}));
  window.call("aten::mul_", "Tensor", {x, y});

  const std::vector<at::Tensor> inputs = window.inputs();
  compile(backend, window, {}).outputs(inputs);

  EXPECT_TRUE(at::equal(inputs.at(0), x.tensor));
  EXPECT_EQ(performed, std::vector<std::string>{"mul"});
}

TEST(OperatorBackendTest, ANumberInATensorsPlaceIsAConstant) {
  c10::IValue seen;
  OperatorBackend backend(c10::DeviceType::CPU, "test",
                          {{"aten::mul.Tensor", [&](const OperatorCall& call) -> DeviceCommand {
                              seen = call.arguments.at(1).constant;
                              return {};
                            }}});
  TapeBuilder window;
  const Handle x = window.input(at::ones({2}));
  const Handle doubled = window.call("aten::mul", "Tensor", {x, tests::number(2.5)})[0];

  compile(backend, window, {doubled});

  EXPECT_EQ(seen.toScalar().toDouble(), 2.5);
}

}  // namespace
}  // namespace torch_lazy
