// Which nodes share a kernel, and in which order kernels and library calls run.
#pragma once

#include <cstdint>
#include <vector>

#include "passes/fusion_group.h"

namespace torch_lazy {

// Where a reduction and what follows from it along the reduced dimensions are two kernels, so that
// the second has work for all of a device: with few results the first has not.
struct FuseOptions {
  // Fewer results than these are few, whatever was reduced to them.
  int64_t few_results = 16;
  // The same of rows that a work item cannot hold and would read from memory again anyhow: those
  // of separate dimensions, and those longer than `longest_held_row`.
  int64_t few_results_of_streamed_rows = 16;
  int64_t longest_held_row = INT64_MAX;  // elements
};

// Items in the order they run, which respects every dependency.
//
// One pass over the nodes. A node joins the groups that make its inputs as long as no other node
// has read them: a group runs where its last member stood, so a group that has been read is closed.
// It, or one that nothing reads, then becomes part of a closed group that it reads if all else that
// it reads is there by then.
// Nodes that read the same large input join as siblings. The judges are:
//  - space: the node's sizes are the group's domain or its parallel part (fusion_group.h), and
//    reductions of a group reduce the same dimensions;
//  - parallelism: what varies along the domain does not follow a reduction to a few points;
//  - size: groups are bounded, so that compile times are, and that accumulators stay in registers.
// Cheap pointwise nodes of which every element is read once, through slices, are computed by their
// readers (`inlined`).
std::vector<FusedItem> fuse(const CoreGraph& graph, const FuseOptions& options = {});

}  // namespace torch_lazy
