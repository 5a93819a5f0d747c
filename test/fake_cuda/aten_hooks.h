// Generators of the device inside ATen.
#pragma once

#include <ATen/core/Generator.h>

namespace torch_lazy::fake_cuda {

// The generator of the CPU that draws for one of the device; another one as it is.
at::Generator generator_on_host(const at::Generator& generator);

}  // namespace torch_lazy::fake_cuda
