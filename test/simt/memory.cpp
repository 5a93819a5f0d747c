#include "simt/memory.h"

#include <fmt/format.h>

#include <cstring>
#include <stdexcept>

namespace torch_lazy::simt {
namespace {

// Between allocations, so that an address past one's end is not in another.
constexpr size_t kGap = 512;
// Freed allocations that messages can name.
constexpr size_t kRemembered = 64;

}  // namespace

void* DeviceMemory::allocate(size_t bytes, size_t alignment, std::string name) {
  Allocation allocation;
  allocation.memory = std::make_unique<char[]>(bytes + 2 * kGap + 3 * alignment);
  const auto start = reinterpret_cast<uintptr_t>(allocation.memory.get()) + kGap;
  const uintptr_t twice = 2 * alignment;
  char* const at = reinterpret_cast<char*>((start + twice - 1) / twice * twice + alignment);
  Region& region = allocation.region;
  region.name = std::move(name);
  region.begin = at;
  region.bytes = bytes;
  region.initialized.assign(bytes, 0);
  allocations_.emplace(at, std::move(allocation));
  return at;
}

void* DeviceMemory::upload(const void* from, size_t bytes, size_t alignment, std::string name) {
  void* const memory = allocate(bytes, alignment, std::move(name));
  std::memcpy(memory, from, bytes);
  mark_initialized(memory, bytes);
  return memory;
}

void DeviceMemory::free(void* memory) {
  const auto found = allocations_.find(static_cast<const char*>(memory));
  if (found == allocations_.end()) {
    throw std::invalid_argument(
        fmt::format("{} is not the start of an allocation of the emulated device", memory));
  }
  const Region& old = found->second.region;
  freed_.push_back({old.name, old.begin, old.bytes});
  if (freed_.size() > kRemembered) freed_.pop_front();
  allocations_.erase(found);
}

void DeviceMemory::mark_initialized(const void* memory, size_t bytes) {
  if (bytes == 0) return;
  Region* const region = find(memory);
  if (region == nullptr || !region->holds(static_cast<const char*>(memory), bytes)) {
    throw std::invalid_argument(fmt::format("{} bytes at {}: no allocation of the emulated device",
                                            bytes, describe(memory)));
  }
  std::memset(region->initialized.data() + (static_cast<const char*>(memory) - region->begin), 1,
              bytes);
}

Region* DeviceMemory::find(const void* address) {
  auto next = allocations_.upper_bound(static_cast<const char*>(address));
  if (next == allocations_.begin()) return nullptr;
  Region& region = std::prev(next)->second.region;
  return region.holds(static_cast<const char*>(address), 1) ? &region : nullptr;
}

std::string DeviceMemory::describe(const void* address) {
  const char* const at = static_cast<const char*>(address);
  for (auto old = freed_.rbegin(); old != freed_.rend(); ++old) {
    if (!old->holds(at, 1)) continue;
    return fmt::format("{} + {}, which has been freed", old->name, at - old->begin);
  }
  auto next = allocations_.upper_bound(at);
  // Within the gap before an allocation it is most likely an index below 0.
  if (next != allocations_.end() && next->first - at <= static_cast<ptrdiff_t>(kGap)) {
    return fmt::format("{} - {}", next->second.region.name, next->first - at);
  }
  if (next == allocations_.begin()) return fmt::format("{}, not the device's memory", address);
  const Region& region = std::prev(next)->second.region;
  const ptrdiff_t offset = at - region.begin;
  if (offset > static_cast<ptrdiff_t>(region.bytes + (64 << 20))) {
    return fmt::format("{}, not the device's memory", address);
  }
  return fmt::format("{} + {} of {} bytes", region.name, offset, region.bytes);
}

}  // namespace torch_lazy::simt
