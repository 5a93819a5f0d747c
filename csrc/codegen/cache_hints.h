// What a kernel asks of the caches.
#pragma once

#include <cstdint>

#include "codegen/lower.h"

namespace torch_lazy::codegen {

// Makes non-temporal the stores that write at least `least_bytes` to memory that the kernel does
// not read: what they write would push itself out of the caches, and each line would be read from
// memory only to be overwritten.
void mark_nontemporal_stores(LoweredKernel& lowered, int64_t least_bytes);

// Marks a kernel without reductions that reads and writes at least `least_bytes`, so that few of
// them are in a core's own cache when it begins: it asks for its rows some lines ahead, because the
// hardware, which does too, stops at the end of each page and seldom fetches what is only written.
void fetch_large_rows_ahead(LoweredKernel& lowered, int64_t least_bytes);

}  // namespace torch_lazy::codegen
