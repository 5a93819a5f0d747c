// Plans of graphs in text.
#pragma once

#include <string>
#include <vector>

#include "graph_evaluator.h"
#include "passes/pipeline.h"
#include "plan/make_plan.h"

namespace torch_lazy::tests {

// Kernels and products in turn; the second input is read last.
inline const std::string kTwoProducts = R"(graph(%a : Float(2, 2, strides=[2, 1], device=cpu),
      %b : Float(2, 2, strides=[2, 1], device=cpu)):
  %x : Float(2, 2, strides=[2, 1], device=cpu) = aten::exp(%a)
  %m : Float(2, 2, strides=[2, 1], device=cpu) = aten::mm(%x, %x)
  %y : Float(2, 2, strides=[2, 1], device=cpu) = aten::sin(%m)
  %n : Float(2, 2, strides=[2, 1], device=cpu) = aten::mm(%y, %b)
  return (%n))";

// A plan for the CPU, as of a graph that was recorded; its inputs have storages of their own.
inline Plan planned(const std::string& text) {
  const auto graph = parse_graph(text);
  std::vector<GraphInput> inputs;
  for (size_t i = 0; i < graph->inputs().size(); ++i)
    inputs.push_back({uint32_t(i), 1 << 16, 0, false});
  const CoreGraph core = core_graph_of(*graph, inputs);
  return make_plan(core, inputs, {16, 1, INT64_MAX, true});
}

}  // namespace torch_lazy::tests
