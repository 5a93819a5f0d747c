// Copies that no byte has to move for.
#pragma once

#include <ATen/core/Tensor.h>

namespace torch_lazy {

// Copies the elements on the device; false, and nothing done, where that is not a copy of bytes:
// they lie or are to be stored differently, or one of both is not on such a device.
bool copy_on_device(const at::Tensor& to, const at::Tensor& from);

}  // namespace torch_lazy
