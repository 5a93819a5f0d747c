// The default backend: kernels generated for the machine's own CPU, library calls through ATen.
#pragma once

#include "base/api.h"

namespace torch_lazy {

// Makes the backend "cpu" known to the registry. Call once.
TORCH_LAZY_MODULE_API void register_cpu_backend();

}  // namespace torch_lazy
