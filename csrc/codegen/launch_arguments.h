// What a kernel printed for CUDA is launched with: its structure of arguments (printer.h).
#pragma once

#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <vector>

#include "base/api.h"
#include "codegen/lower.h"

namespace torch_lazy::codegen {

// By buffer of an instance: how many bytes of the host's memory are in the arguments themselves; 0
// where their address is.
TORCH_LAZY_API std::vector<uint8_t> immediate_bytes(const Kernel& kernel);

// The fields one after another. `pointers` are those of the buffers in order, instance after
// instance; sizes and numbers are the kernel's own.
TORCH_LAZY_API std::vector<uint64_t> launch_arguments(const LoweredKernel& lowered,
                                                      const std::vector<uint8_t>& immediate_bytes,
                                                      c10::ArrayRef<void*> pointers);

}  // namespace torch_lazy::codegen
