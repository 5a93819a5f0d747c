// Sums of gradients of views.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <memory>

namespace torch_lazy {

// A sum of values that are zero but for a piece each, as the gradients of `x[0]`, `x[1]`, ... are,
// becomes the pieces side by side: T steps of a loop over x's first dimension add up T values of
// x's size in eager, and write each element once here. Pieces may also be the same, which are
// added, but must not overlap. Rewrites the graph in place and returns it; results keep their bits.
// Expects what `decompose` promises. Time is linear in the number of nodes, but for pieces that lie
// between one another, of which each two are compared.
std::shared_ptr<torch::jit::Graph> add_pieces(std::shared_ptr<torch::jit::Graph> graph);

}  // namespace torch_lazy
