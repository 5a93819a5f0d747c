// The dispatcher's operator behind a node of a graph.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/jit/ir/ir.h>

#include <optional>
#include <string>

#include "base/api.h"

namespace torch_lazy {

// TorchScript finds a node's overload by the types of its inputs. Where several overloads accept
// them, the one that was recorded stands in this attribute (`attr::overload`).
TORCH_LAZY_API extern const c10::Symbol kOverloadAttribute;

// Sets the attribute of a node of that operator, whose inputs have their types, where it is needed.
void choose_overload(torch::jit::Node& node, const c10::FunctionSchema& schema);

// Empty for prim:: nodes and other nodes that the dispatcher does not know.
TORCH_LAZY_API std::optional<c10::OperatorHandle> find_operator(const torch::jit::Node* node);

// Raises for a node without an operator, naming it.
TORCH_LAZY_API c10::OperatorHandle operator_of(const torch::jit::Node* node);

// "aten::add.Tensor"; the kind's name where there is no operator.
TORCH_LAZY_API std::string operator_name(const torch::jit::Node* node);

}  // namespace torch_lazy
