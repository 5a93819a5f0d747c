#include "trace/held_memory.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <limits>

#include "backend/execution_device.h"
#include "base/config.h"
#include "memory/caching_allocator.h"

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

constexpr uint64_t kLeastDeadBytes = uint64_t(128) << 20;

}  // namespace

int64_t most_dead_bytes(int64_t dead, int64_t pending, bool deterministic) {
  if (config().window_bytes.load(std::memory_order_relaxed) || !execution_device().is_cpu())
    return std::numeric_limits<int64_t>::max();
  const int64_t resident = deterministic ? 0 : memory_statistics().allocated - dead;
  const uint64_t alive = uint64_t(std::max<int64_t>(resident, 0) + pending);
  return int64_t(std::bit_ceil(std::max(alive, kLeastDeadBytes)));
}

int64_t most_held_bytes(c10::DeviceIndex index) {
  if (const int64_t set = config().window_bytes.load(std::memory_order_relaxed)) return set;
  const ExecutionDevice& execution = execution_device();
  if (execution.is_cpu()) return kLeastBytes;
  // By index; 0: not known yet. A device of another type that lazy tensors come to live on inherits
  // it.
  static std::array<std::atomic<int64_t>, 1 + std::numeric_limits<c10::DeviceIndex>::max()> known{};
  std::atomic<int64_t>& bytes = known.at(size_t(index));
  if (bytes == 0) bytes = memory_of(execution.device(index)) / kShareOfMemory;
  return std::max(bytes.load(), kLeastBytes);
}

}  // namespace torch_lazy
