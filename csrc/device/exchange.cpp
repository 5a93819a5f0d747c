#include "device/exchange.h"

#include <ATen/ops/alias.h>

#include "device/lazy_tensor.h"
#include "ops/thread_state.h"

namespace torch_lazy {

at::Tensor export_inner(const at::Tensor& lazy) {
  LazyTensorImpl* impl = lazy_impl(lazy);
  TORCH_CHECK_TYPE(impl, "expected a tensor on device lazy but got one on ", lazy.device());
  Recorder& recorder = Recorder::current();
  recorder.resolve(impl->binding, impl->state());
  recorder.sync({FlushReason::kExport});
  impl->state().exported = true;
  const StepThreadState state;
  // An alias: the inner tensor itself must not be reached by others, who could change its metadata.
  return at::alias(impl->inner());
}

at::Tensor import_inner(const at::Tensor& inner) {
  TORCH_CHECK_TYPE(inner.device().is_cpu() && inner.layout() == c10::kStrided,
                   "expected a strided tensor on the cpu but got a ", inner.layout(), " tensor on ",
                   inner.device());
  const StepThreadState state;
  at::Tensor lazy = wrap_inner(at::alias(inner));
  lazy_impl(lazy)->state().exported = true;
  return lazy;
}

}  // namespace torch_lazy
