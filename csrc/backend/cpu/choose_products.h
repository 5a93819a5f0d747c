// Which library computes a matrix product.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <cstdint>
#include <memory>

namespace torch_lazy {

// Multiplications that take MKL as long as oneDNN takes before it multiplies, on the fastest core
// that was at hand. Whether oneDNN computes what is larger is measured (product_choice.h).
constexpr int64_t kLeastOnednnWork = int64_t{3} << 18;

// mm, bmm and addmm of floats become those of backend/cpu/onednn_products.h, which oneDNN may
// compute, where they are large enough and their operands need no copy first. For machines where
// oneDNN may multiply faster.
std::shared_ptr<torch::jit::Graph> choose_products(std::shared_ptr<torch::jit::Graph> graph);

}  // namespace torch_lazy
