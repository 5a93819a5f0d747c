// Runs a kernel as a GPU would, thread by thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "simt/access_monitor.h"
#include "simt/memory.h"
#include "simt/program.h"
#include "simt/report.h"

namespace torch_lazy::simt {

struct Launch {
  const Program& program;
  std::string kernel;
  Dim3 grid, block;
  void** parameters;  // the address of each, as in cuLaunchKernel
  size_t dynamic_shared_bytes = 0;
  // Of a block, that of the source with it: what no attribute asks for.
  size_t most_shared_bytes = 48 << 10;
};

// Of a block of the kernel, that the source itself declares.
size_t static_shared_bytes(const Program& program, const std::string& kernel);

// Raises std::invalid_argument for a launch that a driver would refuse.
void validate(const Launch& launch);

// Goes on after a defect but for divergence, which ends the launch. Raises as validate()
// does. Launches of one process run one at a time.
Report run(DeviceMemory& memory, const Launch& launch);

}  // namespace torch_lazy::simt
