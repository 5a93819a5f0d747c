// Tensors of the CPU that stand for tensors of the device, over the same memory, so that the CPU's
// kernels can work on it; and what the driver is told of that.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "fake_cuda/cuda_api.h"

namespace torch_lazy::fake_cuda {

// Those of the CPU are themselves. A tensor that is there twice has one twin, and tensors that
// share a storage share one here. They do not own the memory.
std::vector<at::Tensor> on_host(at::TensorList tensors);

// What a kernel reads or writes, found out beforehand: it may be told when the tensor is gone.
struct Access {
  CUdeviceptr begin;
  size_t bytes;
};
// What lies between, where the tensor has gaps, is read too.
std::vector<Access> reads_of(const at::Tensor& tensor);
// Exactly what the tensor has.
std::vector<Access> writes_of(const at::Tensor& tensor);

// That memory has gone back is an error of the device; what was written is initialized.
void tell_reads(const std::vector<Access>& accesses);
void tell_writes(const std::vector<Access>& accesses);

// Has the current stream do it, outside of all modes that the calling thread, or the one that will
// wait, is in. It may call neither the driver nor Python, and owns none of the device's memory.
void enqueue(std::function<void()> work);

}  // namespace torch_lazy::fake_cuda
