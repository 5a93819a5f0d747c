// The pass that removes what need not be computed.
#pragma once

#include <c10/util/ArrayRef.h>

#include <memory>

namespace torch::jit {
struct Graph;
}

namespace torch_lazy {

// Rewrites the graph in place and returns it: equal computations are merged, constants folded,
// identities and redundant copies and casts removed, dead code deleted. Every result keeps its
// bits. What writes, draws random numbers or can fail on data stays, once each and in its order.
// Expects what `decompose` promises. Time is linear in the number of nodes.
//
// `input_offsets`: the storage offset, in elements, of each graph input; where it is left out,
// views of inputs stay.
std::shared_ptr<torch::jit::Graph> simplify(std::shared_ptr<torch::jit::Graph> graph,
                                            c10::IntArrayRef input_offsets = {});

}  // namespace torch_lazy
