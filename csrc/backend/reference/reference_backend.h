// The reference backend: runs a graph node by node through ATen on the CPU.
#pragma once

namespace torch_lazy {

// Makes the backend "reference" known to the registry. Call once.
void register_reference_backend();

}  // namespace torch_lazy
