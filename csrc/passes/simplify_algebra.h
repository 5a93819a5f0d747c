// Identities that hold bit by bit.
#pragma once

#include "passes/graph_builder.h"

namespace torch_lazy {

// Pointwise core operators: their tensor arguments come first, results broadcast over them.
bool is_pointwise(const torch::jit::Node& node);
// The number of leading arguments that are operands; 0 where the node is not pointwise.
size_t operand_count(const torch::jit::Node& node);

// An addmm whose alpha and beta are 1.
bool is_plain_addmm(const torch::jit::Node& node);

// Whether every value of dtype `from` is one of dtype `to`.
bool is_exact_cast(c10::ScalarType from, c10::ScalarType to);

// An existing value, or one made with `builder`, with the elements of the node's only output; null
// where no identity applies. Its strides may differ.
torch::jit::Value* simpler_value(GraphBuilder& builder, torch::jit::Node* node,
                                 c10::IntArrayRef input_offsets);

}  // namespace torch_lazy
