// A window's graph as steps over numbered values.
#pragma once

#include <c10/core/Device.h>
#include <torch/csrc/jit/ir/ir.h>

#include <cstdint>
#include <vector>

#include "plan/step.h"

namespace torch_lazy {

struct GraphSteps {
  std::vector<Step> steps;
  std::vector<size_t> nodes;  // of step i: the index of its node in graph.nodes()
  // The graph's own values that step i makes, in the order of its outputs. Owned by the graph.
  std::vector<std::vector<const torch::jit::Value*>> makes;
  std::vector<uint32_t> inputs;   // slot of graph input i
  std::vector<uint32_t> outputs;  // slot of graph output i
  uint32_t slots = 0;
};

// Raises for a node that is no operator of the dispatcher, naming it.
GraphSteps steps_from_graph(const torch::jit::Graph& graph, c10::Device device);

}  // namespace torch_lazy
