// What a fusion group is lowered to, as text.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codegen/lower.h"
#include "named_graph.h"
#include "passes/fuse.h"

namespace torch_lazy::tests {

using Layouts = std::map<std::string, Layout>;  // by the name of a value

inline std::string joined(const std::vector<int64_t>& numbers) {
  std::string text;
  for (const int64_t number : numbers) text += " " + std::to_string(number);
  return text;
}

// Every kernel's loop IR, then what its size slots hold and how many work items it has; or before
// which node the group has to be split. `placed`: values that lie elsewhere than their type says.
inline std::string lowered(const CoreGraph& graph, const FusionGroup& group,
                           const Layouts& placed = {}) {
  std::vector<Layout> layouts;
  for (const CoreValue& value : graph.values) {
    const auto elsewhere = value.value ? placed.find(value.value->debugName()) : placed.end();
    layouts.push_back(elsewhere != placed.end() ? elsewhere->second
                                                : Layout{value.sizes, value.strides, 0});
  }
  const std::vector<int64_t> offsets(graph.inputs.size());
  std::optional<codegen::LowerFailure> failure;
  const std::vector<codegen::LoweredKernel> kernels =
      codegen::lower({graph, layouts, offsets, /*lanes=*/16, /*threads=*/2}, group, failure);
  if (failure)
    return "unsupported: " + graph.nodes[size_t(failure->node)].node->output()->debugName();
  std::string text = "\n";
  for (const codegen::LoweredKernel& kernel : kernels) {
    codegen::verify(kernel.kernel);
    text += codegen::to_string(kernel.kernel) + "  # S =" + joined(kernel.sizes) + ", " +
            std::to_string(kernel.work_items) + " work items\n";
  }
  return text;
}

// Of the one group that the graph is fused to.
inline std::string lowered(const std::string& text, const Layouts& placed = {}) {
  const CoreGraph graph = named_core_graph(text);
  const std::vector<FusedItem> items = fuse(graph);
  const auto is_group = [](const FusedItem& item) {
    return std::holds_alternative<FusionGroup>(item);
  };
  const auto group = std::find_if(items.begin(), items.end(), is_group);
  EXPECT_EQ(std::count_if(items.begin(), items.end(), is_group), 1) << to_string(graph, items);
  return lowered(graph, std::get<FusionGroup>(*group), placed);
}

}  // namespace torch_lazy::tests
