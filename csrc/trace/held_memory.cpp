#include "trace/held_memory.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "backend/execution_device.h"
#include "base/config.h"

namespace torch_lazy {
namespace {

constexpr int64_t kLeastBytes = int64_t(1) << 30;
constexpr int64_t kShareOfMemory = 16;

// 0 where the device does not tell.
int64_t memory_of(c10::Device device) {
  try {
    return int64_t(c10::getDeviceAllocator(device.type())->getMemoryInfo(device.index()).second);
  } catch (const std::exception&) {
    return 0;
  }
}

}  // namespace

int64_t most_held_bytes(c10::DeviceIndex index) {
  if (const int64_t set = config().window_bytes.load(std::memory_order_relaxed)) return set;
  const ExecutionDevice& execution = execution_device();
  if (execution.is_cpu()) return kLeastBytes;
  // By type; 0: not asked yet. The first device stands for all of its type.
  static std::array<std::atomic<int64_t>, c10::COMPILE_TIME_MAX_DEVICE_TYPES> known{};
  std::atomic<int64_t>& bytes = known[size_t(execution.type)];
  if (bytes == 0)
    bytes = std::max(memory_of(execution.device(index)) / kShareOfMemory, kLeastBytes);
  return bytes;
}

}  // namespace torch_lazy
