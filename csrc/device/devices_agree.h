// Refuses operands on another device where eager on an accelerator would refuse them.
#pragma once

#include <ATen/core/ivalue.h>

#include "ops/operator_info.h"

namespace torch_lazy {

// Raises eager's error when a lazy operator is given a CPU tensor that is neither 0-dim nor an
// index, or one to write to.
void check_devices_agree(const OperatorInfo& op, c10::ArrayRef<c10::IValue> arguments);

// As above for one tensor, of the argument of that number in the schema.
void check_device_agrees(const OperatorInfo& op, size_t argument, const at::Tensor& tensor);

}  // namespace torch_lazy
