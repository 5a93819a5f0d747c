// Looks whether indices are within bounds.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace torch_lazy {

// The indices that an operator takes: those in [lowest, limit), and the one that it passes over.
struct IndexRange {
  int64_t lowest = 0;
  int64_t limit = 0;
  std::optional<int64_t> ignored;
};

// Whether all elements of a tensor of int64 or int32 on the CPU are in the range.
bool indices_within(const at::Tensor& indices, const IndexRange& range);

}  // namespace torch_lazy
