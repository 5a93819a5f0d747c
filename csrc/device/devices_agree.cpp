#include "device/devices_agree.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>

#include "device/lazy_tensor.h"

namespace torch_lazy {

void check_device_agrees(const char* operator_name, const at::Tensor& tensor) {
  if (!tensor.defined() || lazy_impl(tensor) || tensor.dim() == 0) return;
  TORCH_CHECK(false, "Expected all tensors to be on the same device, but found at least two devices, ",
              kLazyDevice, " and ", tensor.device(), "! (in ", operator_name,
              "; move the tensor with .to(\"lazy\"))");
}

void check_devices_agree(const c10::FunctionSchema& schema,
                         c10::ArrayRef<c10::IValue> arguments) {
  const char* name = schema.name().c_str();
  for (const c10::IValue& argument : arguments) {
    if (argument.isTensor()) {
      check_device_agrees(name, argument.toTensor());
    } else if (argument.isTensorList()) {
      for (const at::Tensor& tensor : argument.toTensorList()) check_device_agrees(name, tensor);
    }
  }
}

}  // namespace torch_lazy
