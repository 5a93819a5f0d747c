// Quantized tensors of the device. One is PyTorch's own, over a lazy storage, with the quantizer
// that the execution device made; every operator runs at the call (members_call.h).
#include "device/members_call.h"
#include "device/register.h"

namespace torch_lazy {

void register_quantized_operators() {
  using c10::DispatchKey;
  register_members_fallback(DispatchKey::QuantizedLazy);
  // A composite kernel hides an operator from the fallback, and would take quantized tensors for
  // others where strided ones have a kernel of the device.
  register_members_kernel(
      DispatchKey::QuantizedLazy, [](const c10::OperatorHandle& op, const std::string&) {
        return op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) &&
               op.hasKernelForDispatchKey(DispatchKey::Lazy);
      });
  // Those that make a quantized tensor of a strided one.
  register_members_kernel(
      DispatchKey::Lazy, [](const c10::OperatorHandle& op, const std::string& name) {
        return (name.starts_with("quantize_per_") || name.starts_with("_make_per_")) &&
               op.hasKernelForDispatchKey(DispatchKey::CPU);
      });
}

}  // namespace torch_lazy
