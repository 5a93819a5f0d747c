// The pass from PyTorch's operators to the core set of docs/core-operators.md.
#pragma once

#include <c10/util/ArrayRef.h>

#include <memory>
#include <string>

namespace torch::jit {
struct Graph;
}  // namespace torch::jit

namespace torch_lazy {

// Rewrites the graph in place and returns it. Expects what `functionalize` promises. Operators
// without a rule, those whose arguments their rule does not cover, and those that are marked by
// kLibraryAttribute stay whole. Results keep
// their types: sizes, strides and dtype.
//
// `input_offsets`: the storage offset, in elements, of each graph input; where it is left out, what
// needs a view of an input takes one of a clone.
std::shared_ptr<torch::jit::Graph> decompose(std::shared_ptr<torch::jit::Graph> graph,
                                             c10::IntArrayRef input_offsets = {});

}  // namespace torch_lazy
