// Identities of as_strided_scatter: reading past writes, and writes that together write all.
#pragma once

#include "passes/graph_builder.h"

namespace torch_lazy {

// Of a view of partial writes or of a cat: what was written there, or a view of what was there
// before the writes that do not meet it. Null where neither is known.
torch::jit::Value* read_past_writes(GraphBuilder& builder, torch::jit::Node* view);

// The cat of what the last of several partial writes and those before it wrote, where that is all
// of the value: a cell that activates the chunks of its gates in place. Else null.
torch::jit::Value* cat_of_writes(GraphBuilder& builder, torch::jit::Node* write);

}  // namespace torch_lazy
