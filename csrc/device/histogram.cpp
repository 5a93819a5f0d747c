// Histograms of integers where operators run on the CPU. It has no kernel for them and CUDA has, so
// libraries that know "cpu" and else expect CUDA's habits give them to every other device.
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/histc_ops.h>

#include "device/register.h"
#include "device/unboxed.h"

namespace torch_lazy {
namespace {

// Counts are exact in float64, and come back as the integers that CUDA gives.
at::Tensor histc(const at::Tensor& self, int64_t bins, const at::Scalar& min,
                 const at::Scalar& max) {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(at::_ops::histc::name, "");
  const ExecutionDevice& device = execution_device();
  const bool on_cpu = device.is_cpu() || !op.hasKernelForDispatchKey(device.key);
  if (!on_cpu || !c10::isIntegralType(self.scalar_type(), /*includeBool=*/false))
    return Unboxed<at::_ops::histc>::kernel(self, bins, min, max);
  return at::_ops::histc::call(self.to(at::kDouble), bins, min, max).to(self.scalar_type());
}

}  // namespace

void register_histogram(torch::Library& library) {
  library.impl("histc", histc);
}

}  // namespace torch_lazy
