// Which library computes a matrix product.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <memory>

namespace torch_lazy {

// mm and addmm of floats become those of oneDNN (backend/cpu/onednn_products.h) where they are
// large enough to pay what a call of oneDNN costs more than one of MKL, about 15 us, and their
// operands need no copy first. For machines where oneDNN multiplies faster.
std::shared_ptr<torch::jit::Graph> choose_products(std::shared_ptr<torch::jit::Graph> graph);

}  // namespace torch_lazy
