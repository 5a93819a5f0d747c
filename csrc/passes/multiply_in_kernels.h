// Matrix products that kernels compute.
#pragma once

#include <c10/util/ArrayRef.h>

#include <memory>

namespace torch::jit {
struct Graph;
}  // namespace torch::jit

namespace torch_lazy {

// Products of small matrices, and of a matrix and a vector or few of them, become sums of products
// of elements, which fuse with what is around them; of integers, bfloat16 and half larger ones do,
// where libraries are slower. Others stay calls of a library, which keeps a matrix's parts in
// registers and costs a call. For backends whose kernels multiply in vectors of `lanes` floats.
// Expects core operators, and `addmm` where it is still whole. `input_offsets`: as for decompose.
//
// Estimates decide, of a kernel's work and of what a call costs; measuring corrects them
// (runtime/measured_choice.h).
std::shared_ptr<torch::jit::Graph> multiply_in_kernels(std::shared_ptr<torch::jit::Graph> graph,
                                                       c10::IntArrayRef input_offsets, int lanes);

}  // namespace torch_lazy
