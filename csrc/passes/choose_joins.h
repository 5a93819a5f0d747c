// Cats, flips, and partial writes of constants, that kernels compute.
#pragma once

#include <cstdint>

#include "passes/core_graph.h"

namespace torch_lazy {

constexpr int64_t kShortestRow = 16;

// Turns nodes that put pieces together into nodes of CoreKind::kJoin, whose elements a kernel reads
// from the piece that each lies in: nothing is copied to be read once. What is rolled, padded,
// flipped, shifted or rotated in halves is then one kernel with what reads it.
//
// The pieces are what a kernel can have at any index: values in memory that no kernel makes, slices
// of those that one does, constants and ranges, and what is made of these for the join alone, joins
// included. What else kernels make is better made where it ends up (plan/buffer_assignment), but
// for what is flipped, which is read where it lies. Some kernel has to read the result, or a piece
// be a constant, which would take a kernel of its own. The rows behind a border between pieces have
// at least `shortest_row` elements: an element of a short row costs as much as a vector.
void choose_joins(CoreGraph& graph, int64_t shortest_row = kShortestRow);

// Elements in a row behind each border across the dimension: along it, or those that are denser.
int64_t row_behind_border(c10::IntArrayRef sizes, c10::IntArrayRef strides, size_t dim);

}  // namespace torch_lazy
