// Structural identity of graphs: what they compute, not what their values are called.
#pragma once

#include <cstdint>
#include <string>

#include "base/api.h"

namespace torch::jit {
struct Graph;
}

namespace torch_lazy {

// Operators, topology, attributes, constants (numbers by bits, tensors by content) and types as one
// string of bytes; names and source lines are left out. Two graphs have the same form exactly when
// they are equal.
std::string canonical_form(const torch::jit::Graph& graph);

struct GraphHash {
  uint64_t low = 0, high = 0;
  bool operator==(const GraphHash& other) const { return low == other.low && high == other.high; }
  TORCH_LAZY_MODULE_API std::string hex() const;  // 32 digits
};

// 128-bit XXH3 of the canonical form: the same in every process.
TORCH_LAZY_MODULE_API GraphHash hash_graph(const torch::jit::Graph& graph);

bool same_graph(const torch::jit::Graph& a, const torch::jit::Graph& b);

}  // namespace torch_lazy
