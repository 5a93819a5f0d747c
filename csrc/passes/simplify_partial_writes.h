// Identities of as_strided_scatter: reading past writes, writes that together write all, and those
// that others cover.
#pragma once

#include <optional>

#include "passes/graph_builder.h"
#include "passes/layout.h"

namespace torch_lazy {

// Sizes, strides and offset from argument `first` on, where they are constants.
std::optional<Layout> layout_at(const torch::jit::Node* node, size_t first);
// Of a view, from its base's first element: the offset of a view of an input counts from another
// place. None where that is not known.
std::optional<Layout> layout_of_view(const torch::jit::Node* view, c10::IntArrayRef input_offsets);
// Where a partial write goes, from the first element of what it writes to. None of one to an input,
// whose offset counts from another place, unless that is given, and of one to a view.
std::optional<Layout> written_region(const torch::jit::Value* value,
                                     c10::IntArrayRef input_offsets = {});

// Elements [begin, end) of one dimension, and all of the others.
struct Part {
  int64_t begin = 0, end = 0;
  torch::jit::Value* source = nullptr;  // what is there
};
// The region as a part along `dim`, which is found by the first region. None where it is none.
std::optional<Part> slice_of(const TensorInfo& whole, const Layout& region,
                             std::optional<size_t>& dim);

// Of a view of partial writes or of a cat: it, or a view, of what was written there, or a view of
// what was there before all the writes, if none meets it. Null where neither is known.
torch::jit::Value* read_past_writes(GraphBuilder& builder, torch::jit::Node* view,
                                    c10::IntArrayRef input_offsets);

// The cat of what the last of several partial writes and those before it wrote, where that is all
// of the value: a cell that activates the chunks of its gates in place. Else null.
torch::jit::Value* cat_of_writes(GraphBuilder& builder, torch::jit::Node* write);

// Of a partial write on top of one that it covers: it alone. Else null.
torch::jit::Value* without_covered_write(GraphBuilder& builder, torch::jit::Node* write,
                                         c10::IntArrayRef input_offsets);

}  // namespace torch_lazy
