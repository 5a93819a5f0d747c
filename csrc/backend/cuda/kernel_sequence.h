// Kernels that a plan launches with nothing between them, the same in every run: one by one, or as
// a graph, whichever takes the host less time.
#pragma once

#include <c10/util/ArrayRef.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>

#include "backend/cuda/kernel_graph.h"

namespace torch_lazy::cuda {

// The first runs launch one by one: most windows run a few times only. Then both ways take turns
// and the host's time is taken of each. The graph stays if its least time is the lesser one, else
// it is dropped for good. Either way gives the device the same kernels in the same order.
//
// Used by one thread at a time.
class KernelSequence {
 public:
  // `started`: how many kernels are on their way, also where it raises. The thread has a context.
  void launch(c10::ArrayRef<PreparedLaunch> launches, Stream stream, size_t& started);

 private:
  enum Way : uint8_t { kOneByOne, kAsGraph };
  using Nanoseconds = std::chrono::nanoseconds;

  Way way_of_next_run() const;
  // Makes the graph where there is none. False where that cannot be, or it cannot be launched: then
  // nothing was launched, and launches go on one by one for good.
  bool launch_graph(c10::ArrayRef<PreparedLaunch> launches, Stream stream);
  void note(Way way, Nanoseconds taken);

  int runs_ = 0;  // until it is settled
  bool settled_ = false;
  std::unique_ptr<KernelGraph> graph_;
  std::array<Nanoseconds, 2> least_{Nanoseconds::max(), Nanoseconds::max()};  // by way
};

}  // namespace torch_lazy::cuda
