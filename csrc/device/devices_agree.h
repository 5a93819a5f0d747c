// Refuses operands on the CPU where eager on an accelerator would refuse them.
#pragma once

#include <ATen/core/ivalue.h>

namespace torch_lazy {

// Raises eager's error when a lazy operator is given a CPU tensor that is neither 0-dim nor an index.
void check_devices_agree(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments);

// As above for one plain tensor argument.
void check_device_agrees(const char* operator_name, const at::Tensor& tensor);

}  // namespace torch_lazy
