// Which library computes a matrix product.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <memory>

namespace torch_lazy {

// mm, bmm and addmm of floats become those of backend/cpu/onednn_products.h, which oneDNN may
// compute, where they are large enough and their operands need no copy first. For machines where
// oneDNN may multiply faster.
std::shared_ptr<torch::jit::Graph> choose_products(std::shared_ptr<torch::jit::Graph> graph);

}  // namespace torch_lazy
