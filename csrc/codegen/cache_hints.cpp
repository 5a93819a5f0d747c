#include "codegen/cache_hints.h"

#include <algorithm>

namespace torch_lazy::codegen {
namespace {

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
                        bytes_of(lowered, store.buffer, store.access) >= least_bytes;
  }
}

void fetch_large_rows_ahead(LoweredKernel& lowered, int64_t least_bytes) {
  Kernel& kernel = lowered.kernel;
  if (!kernel.reduction.empty()) return;
  int64_t bytes = 0;
  for (const Expr& expr : kernel.exprs)
    if (expr.op == Op::kLoad) bytes += bytes_of(lowered, expr.buffer, expr.access);
  for (const Store& store : kernel.stores) bytes += bytes_of(lowered, store.buffer, store.access);
  kernel.fetches_ahead = bytes >= least_bytes;
}

}  // namespace torch_lazy::codegen
