// What ATen's kernels do better than ours on a GPU.
#pragma once

#include <memory>

namespace torch::jit {
struct Graph;
}  // namespace torch::jit

namespace torch_lazy::cuda {

// Marks (kLibraryAttribute) reductions to an index of many elements to few: our kernels do not cut
// them, so that few blocks would go through all, where ATen's share a row among blocks.
std::shared_ptr<torch::jit::Graph> leave_long_arg_reductions(
    std::shared_ptr<torch::jit::Graph> graph, int multiprocessors);

}  // namespace torch_lazy::cuda
