// How many arguments share one constant.
#pragma once

#include <cstddef>

namespace torch_lazy {

// TorchScript looks through all uses of a value to take one of them away: a constant that all nodes
// of a long graph used would make replacing them take time with the square of their number.
constexpr size_t kMostUsesOfConstant = 64;

}  // namespace torch_lazy
