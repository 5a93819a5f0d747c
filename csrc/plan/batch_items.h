// Which kernels of a plan are launched together.
#pragma once

#include <cstddef>
#include <vector>

#include "plan/lower_items.h"

namespace torch_lazy {

// The numbers of the items, in the order they run. Items of one list are kernels that are alike
// (codegen/batch.h), small, and independent of each other and of all between which they were. Lists
// of one are what runs by itself. `most_bytes`: of the arguments that a launch takes.
std::vector<std::vector<size_t>> batch_items(const CoreGraph& graph,
                                             const std::vector<GraphInput>& inputs,
                                             const LoweredItems& lowered, size_t most_bytes);

// The steps of such kernels as few. What a step was told of memory may differ from others'.
std::vector<KernelStep> batches_of(std::vector<KernelStep> steps);

}  // namespace torch_lazy
