// Cats of short rows, which kernels write.
#pragma once

#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <memory>

namespace torch::jit {
struct Graph;
}  // namespace torch::jit

namespace torch_lazy {

// ATen copies each row of each piece of a cat by a call, also where that is one element. A piece of
// columns, or of so short rows that kernels store them by whole vectors, that no kernel would make
// right where it belongs (plan/buffer_assignment), since it is an input, a result or seen through
// views, gets a copy, which one does. Changes the graph in place and returns it.
std::shared_ptr<torch::jit::Graph> cat_in_kernels(std::shared_ptr<torch::jit::Graph> graph,
                                                  c10::IntArrayRef input_offsets);

}  // namespace torch_lazy
