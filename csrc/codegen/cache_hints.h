// What a kernel asks of the caches.
#pragma once

#include <cstdint>

#include "codegen/lower.h"

namespace torch_lazy::codegen {

// Of all processors that kernels are made for on the CPU.
constexpr int64_t kCacheLineBytes = 64;

// Makes non-temporal the stores that write at least `least_bytes` to memory that the kernel does
// not read: what they write would push itself out of the caches, and each line would be read from
// memory only to be overwritten. None that go down columns, from row to row: such stores want whole
// lines one after the other, and writes of parts of many take four times as long.
void mark_nontemporal_stores(LoweredKernel& lowered, int64_t least_bytes);

// A kernel that reads and writes at least `cache_bytes`, what a core's own caches hold, asks for
// its rows some lines ahead, because the hardware, which does too, stops at the end of each page
// and seldom fetches what is only written. One that goes down columns and writes there is in as
// many rows at a time as it reduces, of which the hardware follows a few: it asks for less of each
// where they are many, and for nothing where what was asked for would be gone before it is used.
// Kernels that reduce along the lanes ask sweep by sweep (print_prefetch).
void fetch_rows_ahead(LoweredKernel& lowered, int64_t cache_bytes);

}  // namespace torch_lazy::codegen
