// How much memory a kernel moves.
#pragma once

#include <cstdint>

#include "codegen/lower.h"

namespace torch_lazy {

// Bytes of the elements that a kernel loads, and of those that it stores, each element once: what
// must come from memory and go there, however the caches serve the rest. Loads through indices
// count one element an index. An upper bound where a predicate leaves elements out.
int64_t bytes_moved(const codegen::LoweredKernel& lowered);

}  // namespace torch_lazy
