// Short rows put together that kernels write.
#pragma once

#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <memory>

namespace torch::jit {
struct Graph;
}  // namespace torch::jit

namespace torch_lazy {

// A cat of columns, or of so short rows that a kernel stores them by whole vectors, takes ATen a
// call to copy a row of each piece. A piece that no kernel would make right where it belongs
// (plan/buffer_assignment), since it is an input or has other readers as well, gets a copy, which
// one does. Changes the graph in place and returns it.
std::shared_ptr<torch::jit::Graph> cat_in_kernels(std::shared_ptr<torch::jit::Graph> graph,
                                                  c10::IntArrayRef input_offsets);

}  // namespace torch_lazy
