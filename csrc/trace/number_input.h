// A dynamic scalar as an executable is given it.
#pragma once

#include <ATen/core/Tensor.h>

namespace torch_lazy {

// A 0-dim double on the CPU over the number itself, which outlives it.
at::Tensor number_input(double& number);

}  // namespace torch_lazy
