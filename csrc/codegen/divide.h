// Divisions of sizes.
#pragma once

#include <cstdint>

namespace torch_lazy::codegen {

// Rounded up, of numbers that are not negative.
constexpr int64_t divided_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace torch_lazy::codegen
