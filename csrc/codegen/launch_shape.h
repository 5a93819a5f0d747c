// How many threads a kernel printed for CUDA is launched with, as the ABI in printer.h allows.
#pragma once

#include <cstdint>

#include "base/api.h"
#include "codegen/lower.h"

namespace torch_lazy::codegen {

// Of a device, as its driver tells them.
struct GpuLimits {
  int multiprocessors = 1;
  int threads_per_multiprocessor = 1024;
  int64_t shared_bytes_of_block = 48 << 10;  // that one can have if it asks for them
};

// Of cuLaunchKernel; what is not named here is 1.
struct LaunchShape {
  uint32_t block_x = 32;
  uint32_t block_y = 1;
  uint32_t grid_x = 1;
  uint32_t shared_bytes = 0;

  bool operator==(const LaunchShape&) const = default;
};

// Elements that the lanes of a work item go through, one after the other.
int64_t elements_along_lanes(const LoweredKernel& lowered);

// For all work items of the kernel, [0, work_items). The grid fills the device some times; its
// blocks go on to the work items beyond.
TORCH_LAZY_API LaunchShape launch_shape(const LoweredKernel& lowered, const GpuLimits& limits);

}  // namespace torch_lazy::codegen
