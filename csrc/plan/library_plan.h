// A plan that calls the operators of a graph one after the other, as they were recorded.
#pragma once

#include <c10/core/Device.h>
#include <torch/csrc/jit/ir/ir.h>

#include "base/api.h"
#include "plan/plan.h"

namespace torch_lazy {

// Every step is a library call. With `verify` a run checks the metadata of every value that it
// makes. Raises for a node that is no operator of the dispatcher, naming it.
TORCH_LAZY_API Plan library_plan(const torch::jit::Graph& graph, c10::Device device, bool verify);

// What the graph says of the values that a step of the node makes, for LibraryStep::expected.
std::vector<ExpectedValue> expected_values(const torch::jit::Node& node, const Step& step);

}  // namespace torch_lazy
