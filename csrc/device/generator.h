// Generators of device `lazy`: PyTorch's CPU generators that say they are on the device.
#pragma once

#include <ATen/core/Generator.h>

#include <optional>

#include "base/api.h"

namespace torch_lazy {

// A generator of its own, seeded as a new CPU generator is.
TORCH_LAZY_MODULE_API at::Generator make_lazy_generator();

// The device's default generator. It has no state of its own: it is PyTorch's default generator of
// the CPU, which the device draws from where a call names none.
TORCH_LAZY_MODULE_API const at::Generator& default_lazy_generator();

// The generator of the CPU behind one of the device; another generator as it is, a CPU generator
// among them. The kernels inside draw from that.
at::Generator inner_generator(const at::Generator& generator);
std::optional<at::Generator> inner_generator(const std::optional<at::Generator>& generator);

}  // namespace torch_lazy
