#include "device/devices_agree.h"

#include <ATen/core/Tensor.h>

#include "backend/execution_device.h"
#include "device/lazy_tensor.h"

namespace torch_lazy {

void check_device_agrees(const OperatorInfo& op, size_t argument, const at::Tensor& tensor) {
  if (!tensor.defined() || lazy_impl(tensor)) return;
  if (tensor.dim() == 0 && !op.effects->arguments[argument].writes) return;
  // _foreach_addcdiv takes its numbers as a tensor too, which has to be on the CPU.
  if (op.handle.schema().arguments()[argument].name() == "scalars") return;
  TORCH_CHECK(false,
              "Expected all tensors to be on the same device, but found at least two devices, ",
              lazy_device(execution_device().current()), " and ", tensor.device(), "! (in ",
              op.name, "; move the tensor with .to(\"lazy\"))");
}

void check_devices_agree(const OperatorInfo& op, c10::ArrayRef<c10::IValue> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].isTensor()) {
      check_device_agrees(op, i, arguments[i].toTensor());
    } else if (arguments[i].isTensorList()) {
      for (const at::Tensor& tensor : arguments[i].toTensorList())
        check_device_agrees(op, i, tensor);
    }
  }
}

}  // namespace torch_lazy
