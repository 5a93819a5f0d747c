#include "runtime/system_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "runtime/page_map.h"

namespace torch_lazy {
namespace {

constexpr size_t kRegionBytes = size_t(16) << 20;

size_t round_up(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// To the next multiple of `unit`, 0 for one itself.
size_t bytes_to_next(const char* address, size_t unit) {
  const auto number = reinterpret_cast<uintptr_t>(address);
  return round_up(number, unit) - number;
}

// The part that whole huge pages cover: one that stands out would waste up to its size.
size_t huge_part(size_t bytes) {
  return bytes >= SystemMemory::kDirectBytes
             ? bytes / SystemMemory::kHugePageBytes * SystemMemory::kHugePageBytes
             : 0;
}

}  // namespace

size_t SystemMemory::resident_bytes(size_t bytes, size_t used) {
  const size_t huge = huge_part(bytes);
  return used < huge ? round_up(used, kHugePageBytes) : std::min(bytes, round_up(used, kPageBytes));
}

// Without MAP_NORESERVE: a request beyond the machine's memory must fail here, as it does in eager,
// and not at the first write.
char* SystemMemory::map(size_t bytes) {
  system_calls_.fetch_add(1, std::memory_order_relaxed);
  void* const range =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (range == MAP_FAILED) return nullptr;
  auto* const start = static_cast<char*>(range);
  if (PageMap::reaches(reinterpret_cast<uintptr_t>(start) + bytes)) return start;
  unmap(start, bytes);
  return nullptr;
}

void SystemMemory::unmap(char* range, size_t bytes) {
  system_calls_.fetch_add(1, std::memory_order_relaxed);
  munmap(range, bytes);
}

// Whole huge pages of address space, so that neighbours are aligned as well and become one mapping.
char* SystemMemory::map_direct(size_t bytes) {
  const size_t mapped = round_up(bytes, kHugePageBytes);
  char* range = map(mapped);
  if (range && bytes_to_next(range, kHugePageBytes) > 0) {
    unmap(range, mapped);
    char* const wide = map(mapped + kHugePageBytes);
    if (!wide) return nullptr;
    range = wide + bytes_to_next(wide, kHugePageBytes);
    if (range > wide) unmap(wide, size_t(range - wide));
    const size_t behind = size_t(wide + mapped + kHugePageBytes - (range + mapped));
    if (behind) unmap(range + mapped, behind);
  }
  return range;
}

char* SystemMemory::take(size_t bytes) {
  if (bytes >= kDirectBytes) {
    char* const range = map_direct(bytes);
#ifdef MADV_HUGEPAGE
    if (range) {
      system_calls_.fetch_add(1, std::memory_order_relaxed);
      madvise(range, huge_part(bytes), MADV_HUGEPAGE);  // a wish: the system may have none
    }
#endif
    return range;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (char* const range = cut(bytes)) return range;
  char* const region = map_direct(kRegionBytes);
  if (!region) return nullptr;
  add_free(region, kRegionBytes);
  return cut(bytes);
}

char* SystemMemory::cut(size_t bytes) {
  const auto best = free_by_size_.lower_bound({bytes, nullptr});
  if (best == free_by_size_.end()) return nullptr;
  const auto [size, range] = *best;
  remove_free(free_.find(range));
  if (size > bytes) add_free(range + bytes, size - bytes);
  return range;
}

void SystemMemory::add_free(char* range, size_t bytes) {
  free_.emplace(range, bytes);
  free_by_size_.emplace(bytes, range);
}

void SystemMemory::remove_free(std::map<char*, size_t>::iterator range) {
  free_by_size_.erase({range->second, range->first});
  free_.erase(range);
}

void SystemMemory::give_back(char* range, size_t bytes) noexcept {
  if (bytes >= kDirectBytes) return unmap(range, round_up(bytes, kHugePageBytes));
  // Only whole pages of the system can be dropped; the rest stays with its neighbours.
  static const auto system_page = size_t(sysconf(_SC_PAGESIZE));
  const size_t before = bytes_to_next(range, system_page);
  const size_t whole = bytes > before ? (bytes - before) / system_page * system_page : 0;
  if (whole > 0) {
    system_calls_.fetch_add(1, std::memory_order_relaxed);
    madvise(range + before, whole, MADV_DONTNEED);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  auto next = free_.lower_bound(range);
  if (next != free_.end() && next->first == range + bytes) {
    bytes += next->second;
    const auto joined = next++;
    remove_free(joined);
  }
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == range) {
      range = previous->first;
      bytes += previous->second;
      remove_free(previous);
    }
  }
  add_free(range, bytes);
}

}  // namespace torch_lazy
