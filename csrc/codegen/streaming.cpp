#include "codegen/streaming.h"

#include <algorithm>

namespace torch_lazy::codegen {
namespace {

int64_t bytes_written(const LoweredKernel& lowered, const Store& store) {
  const Kernel& kernel = lowered.kernel;
  int64_t bytes = bytes_of(kernel.buffers[store.buffer].type);
  for (size_t i = 0; i < store.access.strides.size(); ++i) {
    if (store.access.strides[i].is(0)) continue;
    const bool kept = i < kernel.kept.size();
    bytes *= lowered.number(kept ? kernel.kept[i] : kernel.reduced[i - kernel.kept.size()]);
  }
  return bytes;
}

bool is_read(const Kernel& kernel, uint32_t buffer) {
  return std::any_of(kernel.exprs.begin(), kernel.exprs.end(), [&](const Expr& expr) {
    return expr.op == Op::kLoad && expr.buffer == buffer;
  });
}

}  // namespace

void stream_large_stores(LoweredKernel& lowered, int64_t least_bytes) {
  for (Store& store : lowered.kernel.stores) {
    const Buffer& buffer = lowered.kernel.buffers[store.buffer];
    store.streamed = store.predicate == kNoPredicate && buffer.exclusive &&
                     !is_read(lowered.kernel, store.buffer) &&
                     bytes_written(lowered, store) >= least_bytes;
  }
}

}  // namespace torch_lazy::codegen
