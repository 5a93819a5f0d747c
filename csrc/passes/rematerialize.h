// Which results of one kernel another one rematerializes, instead of reading them from memory.
#pragma once

#include <vector>

#include "passes/core_graph.h"
#include "passes/fuse.h"

namespace torch_lazy {

// Items as `fuse` made them, where a value that one kernel stores for others is rematerialized by
// each of these if that costs less than the memory it goes through. What autograd keeps for
// backward is mostly such: the parts of an activation, a normalised row, all of them cheap
// functions of what backward reads anyway.
//
// The cost, per vector register of floats and in units of ops/primitive.h:
//  - saved: a line of memory written (twice, since it is mostly fetched before), and one read by
//    each reader;
//  - spent, by each reader: the operators from the values it has in memory to this one, and the
//    lines of each large value that it did not read before.
// Only values of at least `least_bytes`: within a core's cache a line costs less than most
// operators. None that a gather, a library call or the caller reads as well or that is read through
// a view.
//
// A kernel of which nothing is stored any more is left out, unless it has indices to check.
std::vector<FusedItem> rematerialize(const CoreGraph& graph, std::vector<FusedItem> items,
                                     int64_t least_bytes);

}  // namespace torch_lazy
