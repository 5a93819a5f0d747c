// Which nodes do nothing but compute their results.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

namespace torch_lazy {

// Constants, lists, and what takes lists and numbers apart: no operator.
bool is_prim(const torch::jit::Node& node);

// May be removed where nothing reads it, merged with an equal one, and computed of other elements
// than it was asked for: it neither writes nor draws nor can raise.
bool is_pure(const torch::jit::Node& node);

}  // namespace torch_lazy
