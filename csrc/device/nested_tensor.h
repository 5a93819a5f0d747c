// The strided nested tensor of device `lazy`: PyTorch's own, over a lazy storage. Its sizes are on
// the CPU, as on every device.
#pragma once

#include <ATen/NestedTensorImpl.h>
#include <ATen/core/Tensor.h>

namespace torch_lazy {

// A nested tensor with the sizes of `like` over the storage of `buffer`, which is a lazy tensor.
at::Tensor make_nested_tensor(const at::native::NestedTensorImpl& like, const at::Tensor& buffer);

}  // namespace torch_lazy
