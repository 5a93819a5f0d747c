#include "backend/cuda/kernel_sequence.h"

#include <algorithm>
#include <exception>

#include "base/config.h"
#include "base/metrics.h"
#include "base/warn.h"

namespace torch_lazy::cuda {
namespace {

using Clock = std::chrono::steady_clock;

// Runs before there is a graph; the very first one also has the driver load the kernels.
constexpr int kRunsBefore = 3;
// Runs that are timed, of either way. The first one by the graph has the driver upload it.
constexpr int kTimedRuns = 5;
// In graphs of the whole process. The driver keeps a few KiB of the device for each.
constexpr int64_t kMostKernels = 16384;

bool may_have_graph(c10::ArrayRef<PreparedLaunch> launches) {
  return launches.size() > 1 &&
         KernelGraph::kernels_in_graphs() + int64_t(launches.size()) <= kMostKernels;
}

}  // namespace

void KernelSequence::launch(c10::ArrayRef<PreparedLaunch> launches, Stream stream,
                            size_t& started) {
  const Way way = settled_ ? (graph_ ? kAsGraph : kOneByOne) : way_of_next_run();
  const Clock::time_point begin = settled_ ? Clock::time_point() : Clock::now();
  if (way == kOneByOne || !launch_graph(launches, stream)) {
    for (const PreparedLaunch& launch : launches) {
      launch_alone(launch, stream);
      ++started;
    }
  }
  started = launches.size();
  if (!settled_) note(way, Clock::now() - begin);
}

KernelSequence::Way KernelSequence::way_of_next_run() const {
  return runs_ >= kRunsBefore && (runs_ - kRunsBefore) % 2 == 0 ? kAsGraph : kOneByOne;
}

// A graph wants memory of the device when it is made, and when it is launched first. What the
// device says of earlier work the launches one by one are told too.
bool KernelSequence::launch_graph(c10::ArrayRef<PreparedLaunch> launches, Stream stream) {
  try {
    if (!graph_ && may_have_graph(launches)) graph_ = std::make_unique<KernelGraph>(launches);
    if (graph_) {
      graph_->launch(launches, stream);
      return true;
    }
  } catch (const std::exception& error) {
    if (increment(metrics().fallbacks["graph of kernels"]) == 1 && config().warn_fallbacks)
      warn_in_background("kernels are launched one by one, since " + first_line(error));
  }
  graph_.reset();
  settled_ = true;
  return false;
}

void KernelSequence::note(Way way, Nanoseconds taken) {
  if (runs_++ < kRunsBefore) return;
  least_[way] = std::min(least_[way], taken);
  if (runs_ < kRunsBefore + 2 * kTimedRuns) return;
  settled_ = true;
  if (least_[kOneByOne] <= least_[kAsGraph]) graph_.reset();
}

}  // namespace torch_lazy::cuda
