// Kernels that are alike but for what they run over, as one: a GPU takes longer to be given a small
// kernel than to run it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "codegen/lower.h"

namespace torch_lazy::codegen {

// Equal for kernels that differ in names, buffers, sizes and numbers alone.
std::string batch_key(const Kernel& kernel);

// Of an instance, in a launch's arguments.
size_t argument_bytes(const LoweredKernel& kernel);

// One kernel that does what all do, which are independent of each other and have equal keys. The
// order of their buffers, instance after instance, is that of `kernels`.
LoweredKernel batch(const std::vector<LoweredKernel>& kernels);

}  // namespace torch_lazy::codegen
