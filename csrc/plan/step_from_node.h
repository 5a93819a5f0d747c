// The operator call that a graph's node stands for.
#pragma once

#include <c10/core/Device.h>
#include <torch/csrc/jit/ir/ir.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "plan/step.h"

namespace torch_lazy {

// Whether the node makes a constant, a number or a list, which the calls that use it take in as
// operands, and is no call itself.
bool is_operand(const torch::jit::Node& node);

// The graph's values that a call of the node makes, in the order of Step::outputs; those of a list
// one by one. Raises where a returned list is not unpacked once.
std::vector<const torch::jit::Value*> values_made_by(const torch::jit::Node& node);

// `slot_of` says where a value is that the call reads. Where its results go, Step::outputs, is left
// to the caller. Raises for a node that is no operator of the dispatcher, naming it.
Step step_from_node(const torch::jit::Node& node, c10::Device device,
                    const std::function<uint32_t(const torch::jit::Value*)>& slot_of);

}  // namespace torch_lazy
