// Looks whether indices are within bounds.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace torch_lazy {

// Whether all elements of a tensor of int64 or int32 on the CPU are in [lowest, limit).
bool indices_within(const at::Tensor& indices, int64_t lowest, int64_t limit);

}  // namespace torch_lazy
