#include "codegen/launch_shape.h"

#include <algorithm>

#include "codegen/divide.h"
#include "codegen/thread_loop.h"

namespace torch_lazy::codegen {
namespace {

constexpr int64_t kWarpsOfBlock = 8;  // with a work item each
// Times that a grid may fill the device: blocks that end early make room for others, where those of
// one filling would wait for the slowest, but each begins anew. On an H200, 1, 4 and 16 times in
// one run: softmax .605, .615, .643 ms, one-tensor Adam 2.18, 2.11, 2.35 ms.
constexpr int64_t kMostFillings = 4;
// Elements along the lanes that a thread of a work item goes through: more want more threads, and
// where there are few work items, fewer than the other number are worth a thread.
constexpr int64_t kMostElements = 32;
constexpr int64_t kLeastElements = 4;

LaunchShape of_blocks(int64_t x, int64_t y, int64_t wanted, int64_t device_threads) {
  const int64_t resident = std::max<int64_t>(device_threads / (x * y), 1);
  return {uint32_t(x), uint32_t(y), uint32_t(std::min(wanted, kMostFillings * resident))};
}

}  // namespace

int64_t elements_along_lanes(const LoweredKernel& lowered) {
  const Kernel& kernel = lowered.kernel;
  if (kernel.axis == Axis::kReduction)
    return kernel.thread_loop.flat ? lowered.reduction_steps()
                                   : lowered.number(kernel.reduction.back());
  if (kernel.parallel.empty()) return 1;
  return std::min(lowered.number(kernel.block), lowered.number(kernel.parallel.back()));
}

LaunchShape launch_shape(const LoweredKernel& lowered, const GpuLimits& limits) {
  const ThreadLoop& loop = lowered.kernel.thread_loop;
  const int64_t items = std::max<int64_t>(lowered.work_items, 1);
  const int64_t device_threads =
      int64_t{limits.multiprocessors} * limits.threads_per_multiprocessor;
  if (loop.transposed >= 0)
    return of_blocks(ThreadLoop::kColumns, ThreadLoop::kRowsOfSquare, items, device_threads);
  if (loop.rows > 1) return of_blocks(loop.columns(), loop.rows, items, device_threads);
  const int64_t elements = elements_along_lanes(lowered);
  const int64_t at_once = std::max<int64_t>(int64_t{loop.packet} * loop.packets, kLeastElements);
  const int64_t most = most_threads(lowered.kernel);
  int64_t x = ThreadLoop::kWarp;
  const auto can_double = [&](int64_t least_elements) {
    return x < most && elements > x * least_elements;
  };
  if (loop.threads > 0) {
    x = loop.threads;
  } else {
    while (can_double(std::max(kMostElements, at_once))) x *= 2;
    while (can_double(at_once) && 2 * items * x <= device_threads) x *= 2;
  }
  // Warps with a work item each share a block, but not where multiprocessors would get none.
  const int64_t y = x > ThreadLoop::kWarp
                        ? 1
                        : std::clamp<int64_t>(items / limits.multiprocessors, ThreadLoop::kWarp / x,
                                              kWarpsOfBlock * ThreadLoop::kWarp / x);
  LaunchShape shape = of_blocks(x, y, divided_up(items, y), device_threads);
  shape.shared_bytes = uint32_t(shared_bytes(lowered.kernel));
  return shape;
}

}  // namespace torch_lazy::codegen
