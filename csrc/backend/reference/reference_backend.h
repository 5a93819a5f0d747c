// The reference backend: runs a graph node by node through ATen on the CPU.
#pragma once

#include "base/api.h"

namespace torch_lazy {

// Makes the backend "reference" known to the registry. Call once.
TORCH_LAZY_MODULE_API void register_reference_backend();

}  // namespace torch_lazy
