// The default backend: kernels generated for the machine's own CPU, library calls through ATen.
#pragma once

namespace torch_lazy {

// Makes the backend "cpu" known to the registry. Call once.
void register_cpu_backend();

}  // namespace torch_lazy
