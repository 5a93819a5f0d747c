// Graphs of core operators from text.
#pragma once

#include <regex>
#include <string>

#include "graph_evaluator.h"
#include "passes/core_graph.h"

namespace torch_lazy::tests {

// Names of values that nodes make are lost in parsing: they are given again. One node a line.
inline CoreGraph named_core_graph(const std::string& text) {
  const auto graph = parse_graph(text);
  static const std::regex definition(R"(\n  %(\w+) :)");
  auto name = std::sregex_iterator(text.begin(), text.end(), definition);
  for (torch::jit::Node* node : graph->nodes()) node->output()->setDebugName((name++)->str(1));
  return read_core_graph(graph);
}

}  // namespace torch_lazy::tests
