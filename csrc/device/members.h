// Tensors that are made of plain ones: sparse tensors, in coordinate form or compressed, quantized
// tensors, and strided nested tensors. One of device `lazy` is PyTorch's own, and its members are
// lazy tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

namespace torch_lazy {

// Indices and values; of a compressed tensor compressed indices, plain indices and values; of a
// quantized one the same without the quantizer; of a nested one all of its storage.
using Members = c10::SmallVector<at::Tensor, 3>;

// Whether it is such a tensor, of any device.
bool has_members(const at::Tensor& tensor);
Members members_of(const at::Tensor& tensor);
// Tensors of the execution device that it refers to beside: what a quantizer has for each channel.
Members parameters_of(const at::Tensor& tensor);

// A tensor like `like` in all but its members and their device.
at::Tensor assemble(const at::Tensor& like, const Members& members, c10::Device device);
// `tensor` becomes like `like` in all but its members and their device.
void reassemble(const at::Tensor& tensor, const at::Tensor& like, const Members& members);

}  // namespace torch_lazy
