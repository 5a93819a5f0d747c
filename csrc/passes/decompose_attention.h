// Attention as products of matrices with a softmax between them.
#pragma once

#include <c10/util/ArrayRef.h>

#include <memory>

namespace torch::jit {
struct Graph;
}  // namespace torch::jit

namespace torch_lazy {

// The CPU's flash attention and its gradient become `bmm`s and core operators, in pieces of which
// each has few scores: what is around them fuses with the softmax, and the products are those of
// the backend, where flash attention multiplies blocks by MKL. For backends whose products of
// batches are faster than MKL's, where a piece's scores take `least_work` multiplications. Expects
// core operators. `input_offsets`: as for decompose.
std::shared_ptr<torch::jit::Graph> decompose_attention(std::shared_ptr<torch::jit::Graph> graph,
                                                       c10::IntArrayRef input_offsets,
                                                       int64_t least_work);

}  // namespace torch_lazy
