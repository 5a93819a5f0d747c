// Plans of graphs in text.
#pragma once

#include <string>
#include <vector>

#include "graph_evaluator.h"
#include "passes/pipeline.h"
#include "plan/make_plan.h"

namespace torch_lazy::testing {

// A plan for the CPU, as of a graph that was recorded; its inputs have storages of their own.
inline Plan planned(const std::string& text) {
  const auto graph = parse_graph(text);
  std::vector<GraphInput> inputs;
  for (size_t i = 0; i < graph->inputs().size(); ++i)
    inputs.push_back({uint32_t(i), 4096, 0, false});
  const CoreGraph core = core_graph_of(*graph, inputs);
  return make_plan(core, inputs, {16, 1, INT64_MAX, true});
}

}  // namespace torch_lazy::testing
