// Random operators as functions of a key, under the names that stand on tapes and in graphs. A call
// of a random operator on the device becomes one of these (device/random_operators.cpp): its key is
// drawn at the call, so what is left can be deferred, moved, repeated and computed in parts.
//
//   torch_lazy::philox_bernoulli_(self, key, p), philox_bernoulli: 1 with probability p, else 0
//   torch_lazy::philox_mask(self, key, p): the same draw as a bool tensor with the sizes of self
//   torch_lazy::philox_uniform(position, key): float in [0, 1), the elements `position` (int64)
//
// `key` is an int64 tensor without dimensions on the CPU. Elements count in the order of sizes,
// whatever the strides: element i of a Bernoulli draw is philox_uniform(key, i) < p.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <cstdint>

namespace torch_lazy {

// What the key of a random stream says. Raises c10::Error for a tensor that is no key.
uint64_t stream_of(const at::Tensor& key);

// Whether a tensor of this dtype can be filled: bool, integers to 64 bits, half to double.
bool has_random_kernel(c10::ScalarType dtype);

// Defines the operators and their CPU and Meta kernels. Once a process, before any is looked up.
void register_philox_operators();

}  // namespace torch_lazy
