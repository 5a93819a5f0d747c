// Looks at indices that are in memory.
#pragma once

#include "device/lazy_tensor.h"

namespace torch_lazy {

// Whether all elements of a resident tensor on the CPU are in [lowest, limit). True for what is no
// tensor of indices, and for more of them than are worth a look at the call.
bool all_within(LazyTensorImpl& indices, int64_t lowest, int64_t limit);

}  // namespace torch_lazy
