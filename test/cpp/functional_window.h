// What tests of passes start from: a tape's graph made functional, as text and to run.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "graph_evaluator.h"
#include "ir/graph_from_tape.h"
#include "ir/print.h"
#include "ir/verify_graph.h"
#include "passes/functionalize.h"
#include "passes/verify_functional.h"
#include "tape_builder.h"

namespace torch_lazy::tests {

struct FunctionalWindow {
  std::shared_ptr<torch::jit::Graph> recorded, functional;
  std::vector<GraphInput> inputs;

  FunctionalWindow(const TapeBuilder& window, const TapeBuilder::Handles& live) {
    const WindowGraph graph = cpu_graph(window.tape, window.live(live));
    recorded = graph.graph;
    verify_graph(*recorded);
    for (const WindowInput& input : graph.inputs)
      inputs.push_back({input.storage, input.storage_bytes, input.offset, input.cpu});
    functional = functionalize(*recorded, inputs);
    verify_functional(*functional, inputs);
  }

  // The functional graph without origins, lines and devices.
  std::string text() const {
    static const std::regex noise(R"(, device=cpu|, origin=\d+|origin=\d+, |\[origin=\d+\])");
    return std::regex_replace(functional->toString(false), noise, "");
  }
};

inline std::string bytes_of(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.contiguous();
  return {static_cast<const char*>(dense.const_data_ptr()), size_t(dense.nbytes())};
}

inline std::string storage_bytes_of(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.storage().data()), tensor.storage().nbytes()};
}

// The inputs, on the same memory, over storages from whose start the offsets of a functional graph
// count.
inline std::vector<at::Tensor> over_graph_storages(const std::vector<at::Tensor>& inputs,
                                                   const std::vector<GraphInput>& described) {
  std::map<uint32_t, at::Storage> storages;
  std::vector<at::Tensor> placed;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor& input = inputs[i];
    const int64_t shift =
        (input.storage_offset() - described[i].offset) * int64_t(input.itemsize());
    at::Storage& storage = storages[described[i].storage];
    if (!storage || described[i].cpu)
      storage =
          at::Storage(at::Storage::use_byte_size_t(), int64_t(input.storage().nbytes()) - shift,
                      {static_cast<char*>(input.storage().mutable_data()) + shift, at::kCPU});
    placed.push_back(at::empty({0}, input.options())
                         .set_(storage, described[i].offset, input.sizes(), input.strides()));
  }
  return placed;
}

// Runs both graphs on equal inputs; expects equal outputs and inputs written alike, bit by bit.
inline void expect_same_results(const FunctionalWindow& graphs,
                                const std::vector<at::Tensor>& inputs,
                                const std::vector<at::Tensor>& same_inputs) {
  const auto expected = evaluate(*graphs.recorded, inputs);
  const auto made = evaluate(*graphs.functional, over_graph_storages(same_inputs, graphs.inputs));
  ASSERT_EQ(expected.size(), made.size());
  for (size_t i = 0; i < made.size(); ++i) {
    EXPECT_EQ(expected[i].scalar_type(), made[i].scalar_type()) << "output " << i;
    EXPECT_EQ(expected[i].sizes(), made[i].sizes()) << "output " << i;
    EXPECT_EQ(expected[i].strides(), made[i].strides()) << "output " << i;
    EXPECT_EQ(bytes_of(expected[i]), bytes_of(made[i])) << "output " << i << " is\n"
                                                        << made[i] << "\ninstead of\n"
                                                        << expected[i];
    for (size_t j = 0; j < i; ++j) EXPECT_FALSE(made[i].is_alias_of(made[j])) << i << ", " << j;
    for (const at::Tensor& input : same_inputs)
      EXPECT_NE(made[i].storage().data(), input.storage().data()) << i;
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    EXPECT_EQ(storage_bytes_of(inputs[i]), storage_bytes_of(same_inputs[i]))
        << "input " << i << " is\n"
        << same_inputs[i] << "\ninstead of\n"
        << inputs[i];
}

// The functional graph as text, after it has been found to compute what the recorded one does.
inline std::string functional(const TapeBuilder& window, const TapeBuilder::Handles& live) {
  const FunctionalWindow graphs(window, live);
  expect_same_results(graphs, window.inputs(), window.inputs());
  return "\n" + graphs.text();
}

// What functionalize() says when it refuses a window.
inline std::string refusal(const TapeBuilder& window, const TapeBuilder::Handles& live) {
  try {
    FunctionalWindow(window, live);
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "none";
}

}  // namespace torch_lazy::tests
