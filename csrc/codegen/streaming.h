// Which stores of a kernel go past the caches.
#pragma once

#include <cstdint>

#include "codegen/lower.h"

namespace torch_lazy::codegen {

// Marks the stores that write at least `least_bytes` to memory that the kernel does not read: what
// they write would push itself out of the caches, and each line would be read from memory only to
// be overwritten.
void stream_large_stores(LoweredKernel& lowered, int64_t least_bytes);

}  // namespace torch_lazy::codegen
