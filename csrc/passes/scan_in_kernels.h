// Cumulative sums and products that kernels compute.
#pragma once

#include <memory>

namespace torch::jit {
struct Graph;
}  // namespace torch::jit

namespace torch_lazy {

// Marks those that take a kernel less time than ATen (kKernelAttribute), for a backend whose
// kernels go along a dimension step by step: a GPU's library shares a row among threads. Marks the
// nodes in place and returns the graph.
std::shared_ptr<torch::jit::Graph> scan_in_kernels(std::shared_ptr<torch::jit::Graph> graph);

}  // namespace torch_lazy
