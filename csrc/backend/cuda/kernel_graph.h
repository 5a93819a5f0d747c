// Kernels launched one after the other, as a graph of the driver's: one call launches all of them.
#pragma once

#include <c10/util/ArrayRef.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/cuda/cuda_kernel.h"
#include "backend/cuda/driver.h"

namespace torch_lazy::cuda {

// A launch: a kernel with the values of its arguments, over all of its work items. The kernel
// outlives it.
struct PreparedLaunch {
  const CudaKernel* kernel;
  std::vector<uint64_t> arguments;
  int64_t work_items;
};

// Launches one kernel by itself. The thread has a context.
void launch_alone(const PreparedLaunch& launch, Stream stream);

// Of the context in which it was made. Kernels run in their order, as they would one by one: behind
// all that the stream has, and behind the graph's own earlier launches on any stream. A launch
// takes the arguments that the graph has then; to change them later changes no launch that was
// made.
//
// Used by one thread at a time. It may be destroyed while the device runs it.
class KernelGraph {
 public:
  // Raises c10::Error where the driver does not make it.
  explicit KernelGraph(c10::ArrayRef<PreparedLaunch> launches);
  ~KernelGraph();
  KernelGraph(const KernelGraph&) = delete;
  KernelGraph& operator=(const KernelGraph&) = delete;

  // Launches the kernels that it was made of, with these arguments. Has launched none where it
  // raises.
  void launch(c10::ArrayRef<PreparedLaunch> launches, Stream stream);

  // Of all graphs of the process: a kernel in a graph takes memory of the device.
  static int64_t kernels_in_graphs();

 private:
  void add_kernels(c10::ArrayRef<PreparedLaunch> launches);
  void destroy() noexcept;

  Graph graph_ = nullptr;
  ExecutableGraph executable_ = nullptr;
  std::vector<GraphNode> nodes_;                  // by kernel
  std::vector<std::vector<uint64_t>> arguments_;  // that the executable graph has, by kernel
};

}  // namespace torch_lazy::cuda
