// The clock with which DistributedDataParallel takes its statistics of a step; PyTorch has one for
// each type of device that it knows, and warns where it finds none.
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>

#include "device/register.h"

namespace torch_lazy {
namespace {

// Takes the time of the host, as for the CPU. Operations that are pending at an event count for
// later events: what is measured is when the script got there. The times of communication are
// right, since a bucket's operations have run when it is communicated.
class HostTimer final : public c10d::Timer {
 public:
  explicit HostTimer(c10::Device) {}

  std::optional<int64_t> measureDifference(Event start, Event end) override {
    const int64_t from = getTimeRef(start);
    const int64_t to = getTimeRef(end);
    // Events of the step before, where this step had no such event.
    if (from == c10d::kUnsetTime || to < from) return std::nullopt;
    return to - from;
  }
};

}  // namespace

void register_data_parallel_timer() {
  c10d::TimerRegistry()->Register(c10::kLazy, [](c10::Device device) {
    return std::unique_ptr<c10d::Timer>(std::make_unique<HostTimer>(device));
  });
}

}  // namespace torch_lazy
