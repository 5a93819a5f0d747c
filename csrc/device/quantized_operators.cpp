// Quantized tensors of the device. One is PyTorch's own, over a lazy storage, with the quantizer
// that the execution device made; every operator runs at the call (members_call.h).
#include "device/members_call.h"
#include "device/register.h"

namespace torch_lazy {

void register_quantized_operators() {
  using c10::DispatchKey;
  register_members_fallback(DispatchKey::QuantizedLazy);
  // Those that make a quantized tensor of a strided one.
  register_members_kernel(
      DispatchKey::Lazy,
      [](const c10::OperatorHandle& op) { return op.hasKernelForDispatchKey(DispatchKey::CPU); },
      {"aten::quantize_per_", "aten::_make_per_"});
}

// A composite kernel hides an operator from the fallback, and would take quantized tensors for
// others where strided ones have a kernel of the device.
void register_kernels_of_quantized_tensors() {
  using c10::DispatchKey;
  register_members_kernel(DispatchKey::QuantizedLazy, [](const c10::OperatorHandle& op) {
    return op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) &&
           op.hasKernelForDispatchKey(DispatchKey::Lazy);
  });
}

}  // namespace torch_lazy
