// What cats there are, and pointwise operators that go to the parts of one.
#pragma once

#include <optional>
#include <vector>

#include "passes/graph_builder.h"

namespace torch_lazy {

struct Cat {
  std::vector<torch::jit::Value*> parts;
  size_t dim = 0;
  TensorInfo info;
};

// A cat along a dimension that is known, all parts of which have elements and the cat's dtype and
// rank: none is ATen's empty tensor of one dimension. Nothing for other nodes.
std::optional<Cat> plain_cat(torch::jit::Node& node);

// The cat of what a pointwise operator makes of each part of a cat that it alone reads: kernels
// then make the parts of the result where they end up, and nothing has to be joined in between.
// Null where the operator reads no such cat, or where its other operands would have to be stored to
// be read part by part.
torch::jit::Value* cat_of_results(GraphBuilder& builder, torch::jit::Node* pointwise,
                                  size_t operands);

}  // namespace torch_lazy
