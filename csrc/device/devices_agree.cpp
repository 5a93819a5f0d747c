#include "device/devices_agree.h"

#include <ATen/core/Tensor.h>

#include "backend/execution_device.h"
#include "device/lazy_tensor.h"

namespace torch_lazy {

void check_device_agrees(const OperatorInfo& op, const at::Tensor& tensor, bool written) {
  if (!tensor.defined() || lazy_impl(tensor) || (tensor.dim() == 0 && !written)) return;
  TORCH_CHECK(false,
              "Expected all tensors to be on the same device, but found at least two devices, ",
              lazy_device(execution_device().current()), " and ", tensor.device(), "! (in ",
              op.name, "; move the tensor with .to(\"lazy\"))");
}

void check_devices_agree(const OperatorInfo& op, c10::ArrayRef<c10::IValue> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    // _foreach_addcdiv takes its numbers as a tensor too, which has to be on the CPU.
    if (arguments[i].isTensor() && op.handle.schema().arguments()[i].name() == "scalars") continue;
    const bool written = op.effects->arguments[i].writes;
    if (arguments[i].isTensor()) {
      check_device_agrees(op, arguments[i].toTensor(), written);
    } else if (arguments[i].isTensorList()) {
      for (const at::Tensor& tensor : arguments[i].toTensorList())
        check_device_agrees(op, tensor, written);
    }
  }
}

}  // namespace torch_lazy
