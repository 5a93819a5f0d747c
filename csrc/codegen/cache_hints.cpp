#include "codegen/cache_hints.h"

#include <algorithm>
#include <numeric>

#include "codegen/divide.h"
#include "codegen/loop_analysis.h"

namespace torch_lazy::codegen {
namespace {

// In a kernel without reductions. Measured on SwiGLU, forward and backward, between matrix products
// (GEMM) of 1024 x 704 floats, a tenth and a fifth faster; from 1 to 4 KiB it makes no difference.
constexpr int64_t kMostAhead = 1024;
// Down columns, where it has to stay in the nearest cache for longer: a softmax over the first of
// 16 x 73,766, whose steps are kept, takes .57 of the time with 512 on a Zen 3, and .63 with 64 or
// 1,024.
constexpr int64_t kMostAheadInColumns = 512;
// Of the nearest cache, what all have at least.
constexpr int64_t kNearestCacheBytes = 32 << 10;
// Of the next one: how far apart two lines are that can only be in the same places, and how many
// places these are.
constexpr int64_t kSamePlaces = 64 << 10, kLinesInPlaces = 8;

int64_t bytes_of(const LoweredKernel& lowered, uint32_t buffer, const Access& access) {
  const Kernel& kernel = lowered.kernel;
  int64_t bytes = bytes_of(kernel.buffers[buffer].type);
  for (size_t i = 0; i < access.strides.size(); ++i) {
    if (access.strides[i].is(0)) continue;
    const bool parallel = i < kernel.parallel.size();
    bytes *= lowered.number(parallel ? kernel.parallel[i]
                                     : kernel.reduction[i - kernel.parallel.size()]);
  }
  return bytes;
}

// How many rows of the memory a column goes through.
int64_t rows_at_a_time(const LoweredKernel& lowered, const Access& access) {
  const Kernel& kernel = lowered.kernel;
  int64_t rows = 1;
  if (kernel.axis == Axis::kReduction) return rows;
  for (size_t i = 0; i < kernel.reduction.size(); ++i) {
    if (!access.strides[kernel.parallel.size() + i].is(0))
      rows *= lowered.number(kernel.reduction[i]);
  }
  return rows;
}

// Of the lines that a column reads or writes at a time, those that can only be in the same places.
int64_t lines_in_same_places(const LoweredKernel& lowered, uint32_t buffer, const Access& access) {
  const Kernel& kernel = lowered.kernel;
  int64_t apart = kSamePlaces;  // that any two rows are, or a multiple of it
  for (size_t i = kernel.parallel.size(); i < access.strides.size(); ++i)
    apart =
        std::gcd(apart, lowered.number(access.strides[i]) * bytes_of(kernel.buffers[buffer].type));
  return divided_up(rows_at_a_time(lowered, access) * apart, kSamePlaces);
}

}  // namespace

void mark_nontemporal_stores(LoweredKernel& lowered, int64_t least_bytes) {
  for (Store& store : lowered.kernel.stores) {
    const Buffer& buffer = lowered.kernel.buffers[store.buffer];
    store.nontemporal = store.predicate == kNoPredicate && buffer.exclusive &&
                        !is_read(lowered.kernel, store.buffer) &&
                        rows_at_a_time(lowered, store.access) == 1 &&
                        bytes_of(lowered, store.buffer, store.access) >= least_bytes;
  }
}

void fetch_rows_ahead(LoweredKernel& lowered, int64_t cache_bytes) {
  Kernel& kernel = lowered.kernel;
  const bool columns = !kernel.reduction.empty();
  if (columns && kernel.axis == Axis::kReduction) return;
  int64_t bytes = 0, rows = 0, in_same_places = 0;
  bool writes_rows = false;
  const auto add = [&](uint32_t buffer, const Access& access) {
    bytes += bytes_of(lowered, buffer, access);
    rows += rows_at_a_time(lowered, access);
    in_same_places += lines_in_same_places(lowered, buffer, access);
  };
  for (const Expr& expr : kernel.exprs)
    if (expr.op == Op::kLoad) add(expr.buffer, expr.access);
  for (const Store& store : kernel.stores) {
    add(store.buffer, store.access);
    writes_rows |= rows_at_a_time(lowered, store.access) > 1;
  }
  if (bytes < cache_bytes) return;
  if (!columns) {
    kernel.fetch_ahead_bytes = kMostAhead;
  } else if (writes_rows && in_same_places <= kLinesInPlaces) {
    int64_t ahead = kMostAheadInColumns;
    while (ahead >= kCacheLineBytes && rows * ahead > kNearestCacheBytes) ahead /= 2;
    kernel.fetch_ahead_bytes = ahead >= kCacheLineBytes ? ahead : 0;
  }
}

}  // namespace torch_lazy::codegen
