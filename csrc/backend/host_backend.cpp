#include "backend/host_backend.h"

#include <unistd.h>

#include "memory/caching_allocator.h"
#include "ops/thread_state.h"

namespace torch_lazy {
namespace {

const c10::Device kDevice{c10::kCPU};

class FinishedEvent final : public Event {
 public:
  bool finished() const override { return true; }
  void wait() const override {}
};

}  // namespace

DeviceProperties HostBackend::properties(c10::DeviceIndex index) const {
  TORCH_CHECK(index == 0, "backend '", name_, "' has one device, there is no device ", int(index));
  const int64_t memory = int64_t(sysconf(_SC_PHYS_PAGES)) * int64_t(sysconf(_SC_PAGE_SIZE));
  return {.name = description_, .device = kDevice, .total_memory = memory};
}

c10::Allocator* HostBackend::allocator(c10::DeviceIndex) {
  return &lazy_allocator();
}

void HostBackend::copy(const at::Tensor& source, at::Tensor& destination, bool non_blocking,
                       c10::Stream) {
  const StepThreadState state;
  destination.copy_(source, non_blocking);
}

c10::Stream HostBackend::current_stream(c10::DeviceIndex) {
  return c10::Stream(c10::Stream::DEFAULT, kDevice);
}

std::unique_ptr<Event> HostBackend::record_event(c10::Stream) {
  return std::make_unique<FinishedEvent>();
}

}  // namespace torch_lazy
