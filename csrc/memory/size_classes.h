// Sizes of small objects: eight classes a doubling, so that an object is at most an eighth larger
// than what was asked for, and a freed one fits most requests of about its size.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace torch_lazy {

struct SizeClass {
  uint32_t index;
  size_t bytes;  // what a block of the class holds
};

// The least class that holds `bytes` (at least 1), counted in multiples of `unit` bytes: 1 to 8
// units in steps of one, then each doubling in eight steps.
constexpr SizeClass size_class(size_t bytes, size_t unit) {
  const size_t units = (bytes - 1) / unit;  // one less than are needed
  if (units < 8) return {uint32_t(units), (units + 1) * unit};
  const auto shift = uint32_t(std::bit_width(units)) - 4;
  const size_t steps = (units >> shift) + 1;  // 9 to 16
  return {8 * shift + uint32_t(steps) - 1, (steps << shift) * unit};
}

}  // namespace torch_lazy
