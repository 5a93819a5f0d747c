#include "simt/launch.h"

#include <fmt/format.h>

#include <mutex>
#include <stdexcept>

#include "simt/block_runner.h"
#include "simt/device_functions.h"

namespace torch_lazy::simt {
namespace {

constexpr uint32_t kMostThreadsOfBlock = 1024;
constexpr uint32_t kMostBlocksOfYAndZ = 65535;

}  // namespace

size_t static_shared_bytes(const Program& program, const std::string& kernel) {
  const Module& module = program.module();
  size_t bytes = 0;
  for (int64_t i = 0; i < module.shared_count; ++i) {
    const SharedVariable& variable = module.shared[i];
    const std::string owner = variable.kernel;
    if (variable.is_dynamic == 0 && (owner.empty() || owner == kernel)) {
      bytes += static_cast<size_t>(variable.bytes);
    }
  }
  return bytes;
}

void validate(const Launch& launch) {
  const Dim3 block = launch.block, grid = launch.grid;
  if (block.count() == 0 || block.count() > kMostThreadsOfBlock || grid.count() == 0) {
    throw std::invalid_argument(fmt::format(
        "{} blocks of {} threads: a block has 1 to {} threads, a grid at least one block",
        to_string(grid), to_string(block), kMostThreadsOfBlock));
  }
  if (grid.y > kMostBlocksOfYAndZ || grid.z > kMostBlocksOfYAndZ) {
    throw std::invalid_argument(
        fmt::format("a grid of {} blocks: along y and z there are at most {}", to_string(grid),
                    kMostBlocksOfYAndZ));
  }
  const size_t shared =
      launch.dynamic_shared_bytes + static_shared_bytes(launch.program, launch.kernel);
  if (shared > launch.most_shared_bytes) {
    throw std::invalid_argument(
        fmt::format("the blocks of {} want {} bytes of shared memory, of at most {}", launch.kernel,
                    shared, launch.most_shared_bytes));
  }
}

Report run(DeviceMemory& memory, const Launch& launch) {
  validate(launch);
  const KernelEntry& kernel = launch.program.kernel(launch.kernel);
  static std::mutex mutex;  // of the kernels' shared variables and of the device functions' state
  const std::lock_guard<std::mutex> lock(mutex);
  Report report;
  AccessMonitor monitor(memory, launch.program, launch.grid, launch.block,
                        launch.dynamic_shared_bytes, report);
  BlockRunner runner(monitor, launch.block, report);
  set_runner(&runner);
  set_dimensions(launch.grid, launch.block);
  for (uint32_t block = 0; block < launch.grid.count(); ++block) {
    set_block_index(launch.grid.index(block));
    if (!runner.run(block, kernel, launch.parameters)) break;
  }
  set_runner(nullptr);
  monitor.count_distinct_bytes();
  return report;
}

}  // namespace torch_lazy::simt
