// Biases of matrix products are added by the kernels that read these.
#pragma once

#include <c10/util/ArrayRef.h>
#include <torch/csrc/jit/ir/ir.h>

#include <memory>

namespace torch_lazy {

// addmm(bias, a, b) becomes mm(a, b) + bias where kernels alone read the result. ATen copies the
// bias into the result first, and the product then reads and writes it once more; a kernel that
// reads the result anyway adds the bias for nothing. Float and double only: of narrower types
// eager rounds product and sum once, together. The sum is rounded as a product of one block is;
// where the library takes the inner dimension in several blocks, in another order.
// `input_offsets` as for GraphBuilder.
std::shared_ptr<torch::jit::Graph> move_biases(std::shared_ptr<torch::jit::Graph> graph,
                                               c10::IntArrayRef input_offsets = {});

}  // namespace torch_lazy
