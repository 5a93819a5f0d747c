// Strided nested tensors of the device. One is PyTorch's own over a lazy storage; what asks for
// sizes is PyTorch's code for any device, every other operator runs at the call (members_call.h).
#include <ATen/ops/_nested_tensor_size_native.h>
#include <ATen/ops/_nested_tensor_storage_offsets_native.h>
#include <ATen/ops/_nested_tensor_strides_native.h>

#include "base/immortal_library.h"
#include "device/members_call.h"
#include "device/register.h"

namespace torch_lazy {

void register_nested_operators() {
  using c10::DispatchKey;
  register_members_fallback(DispatchKey::NestedTensorLazy);
  // Those that make a nested tensor of strided ones.
  register_members_kernel(
      DispatchKey::Lazy,
      [](const c10::OperatorHandle& op) {
        return op.hasKernelForDispatchKey(DispatchKey::CPU) ||
               op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd);
      },
      {"aten::_nested_"});
}

void register_kernels_of_nested_tensors() {
  using c10::DispatchKey;
  torch::Library& library =
      immortal_library(torch::Library::IMPL, "aten", DispatchKey::NestedTensorLazy);
  library.impl("_nested_tensor_size", at::native::_nested_tensor_size);
  library.impl("_nested_tensor_strides", at::native::_nested_tensor_strides);
  library.impl("_nested_tensor_storage_offsets", at::native::_nested_tensor_storage_offsets);
  // Composite kernels hide an operator from the fallback.
  register_members_kernel(DispatchKey::NestedTensorLazy, [](const c10::OperatorHandle& op) {
    return op.hasKernelForDispatchKey(DispatchKey::NestedTensorCPU);
  });
}

}  // namespace torch_lazy
