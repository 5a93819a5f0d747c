// Looks at indices that are in memory.
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/indices_within.h"

namespace torch_lazy {

// Whether all elements of a tensor in the CPU's memory are in the range. True for what is no tensor
// of indices, and for more of them than are worth a look at the call.
bool all_within(const at::Tensor& indices, const IndexRange& range);

}  // namespace torch_lazy
