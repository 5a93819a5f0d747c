// Which nodes share a kernel, and in which order kernels and library calls run.
#pragma once

#include <vector>

#include "passes/fusion_group.h"

namespace torch_lazy {

// Items in the order they run, which respects every dependency.
//
// One pass over the nodes. A node joins the groups that make its inputs as long as no other node
// has read them: a group runs where its last member stood, so a group that has been read is closed.
// It then becomes part of a closed group that it reads if all else that it reads is there by then.
// Nodes that read the same large input join as siblings. The judges are:
//  - space: the node's sizes are the group's domain or its parallel part (fusion_group.h), and
//    reductions of a group reduce the same dimensions;
//  - parallelism: what varies along the domain does not follow a reduction to a few points;
//  - size: groups are bounded, so that compile times are, and that accumulators stay in registers.
// Cheap pointwise nodes of which every element is read once, through slices, are computed by their
// readers (`inlined`).
std::vector<FusedItem> fuse(const CoreGraph& graph);

}  // namespace torch_lazy
