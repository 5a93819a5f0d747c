#include "codegen/cache_hints.h"

#include <algorithm>
#include <numeric>

namespace torch_lazy::codegen {
namespace {

constexpr int64_t kLineBytes = 64;
// In a kernel without reductions. Measured on SwiGLU, forward and backward, between matrix products
// (GEMM) of 1024 x 704 floats, a tenth and a fifth faster; from 1 to 4 KiB it makes no difference.
constexpr int64_t kMostAhead = 1024;
// Down columns, where it has to stay in the nearest cache for longer: a softmax over the first of
// 16 x 73,766, whose steps are kept, takes .57 of the time with 512 and .63 with 64 or 1,024 (Zen
// 3).
constexpr int64_t kMostAheadInColumns = 512;
// The nearest cache: what all have at least, and how far apart two lines are that can only be in
// the same few places of it.
constexpr int64_t kNearestCacheBytes = 32 << 10, kSamePlaces = 4096, kLinesInPlaces = 8;

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

// Whether the rows that a column goes through drive each other out of the nearest cache.
bool rows_collide(const LoweredKernel& lowered, uint32_t buffer, const Access& access) {
  const Kernel& kernel = lowered.kernel;
  if (kernel.reduction.empty()) return false;
  const int64_t apart =
      lowered.number(access.strides.back()) * bytes_of(kernel.buffers[buffer].type);
  return rows_at_a_time(lowered, access) * std::gcd(apart, kSamePlaces) >
         kLinesInPlaces * kSamePlaces;
}

bool is_read(const Kernel& kernel, uint32_t buffer) {
  return std::any_of(kernel.exprs.begin(), kernel.exprs.end(), [&](const Expr& expr) {
    return expr.op == Op::kLoad && expr.buffer == buffer;
  });
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
  int64_t bytes = 0, rows = 0;
  bool collide = false, writes_rows = false;
  const auto add = [&](uint32_t buffer, const Access& access) {
    bytes += bytes_of(lowered, buffer, access);
    rows += rows_at_a_time(lowered, access);
    collide |= rows_collide(lowered, buffer, access);
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
  } else if (writes_rows && !collide) {
    int64_t ahead = kMostAheadInColumns;
    while (ahead >= kLineBytes && rows * ahead > kNearestCacheBytes) ahead /= 2;
    kernel.fetch_ahead_bytes = ahead >= kLineBytes ? ahead : 0;
  }
}

}  // namespace torch_lazy::codegen
