#include "memory/system_memory.h"

#include <sys/mman.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>

namespace torch_lazy {
namespace {

constexpr size_t kRegionBytes = size_t(64) << 20;

size_t round_up(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// To the next multiple of `unit`, 0 for one itself.
size_t bytes_to_next(const char* address, size_t unit) {
  const auto number = reinterpret_cast<uintptr_t>(address);
  return round_up(number, unit) - number;
}

// What of a range the system can drop or unmap: the rest shares its page with a neighbour.
FreeRanges::Range whole_system_pages(FreeRanges::Range range) {
  static const auto page = size_t(sysconf(_SC_PAGESIZE));
  const size_t before = std::min(bytes_to_next(range.start, page), range.bytes);
  return {range.start + before, (range.bytes - before) / page * page};
}

// Tensors of the CPU lie in the C library's heap, which keeps what is freed there for more of them:
// in eager a freed checkpoint's memory becomes that of gradients, which are not in the heap here.
// A heap of 100,000 free pieces takes a tenth of a second.
void trim_heap() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace

void SystemMemory::note_mapped(size_t bytes) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    mapped_ += bytes;
    if (mapped_ < trimmed_at_ + trimmed_at_ / 8) return;
    trimmed_at_ = mapped_;
  }
  trim_heap();
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

// Of whole huge pages, the first of which is aligned. Its bytes are 0 when the system has no more.
FreeRanges::Range SystemMemory::map_region(size_t bytes) {
  const size_t mapped = round_up(std::max(bytes, kRegionBytes), kHugePageBytes);
  char* range = map(mapped);
  if (range && bytes_to_next(range, kHugePageBytes) > 0) {
    unmap(range, mapped);
    char* const wide = map(mapped + kHugePageBytes);
    range = wide ? wide + bytes_to_next(wide, kHugePageBytes) : nullptr;
    if (range > wide) unmap(wide, size_t(range - wide));
    const auto behind = range ? size_t(wide + kHugePageBytes - range) : 0;
    if (behind) unmap(range + mapped, behind);
  }
  if (range) note_mapped(mapped);
  return {range, range ? mapped : 0};
}

// The whole huge pages of a range that is about to be written for the first time.
void SystemMemory::wish_for_huge_pages(FreeRanges::Range range) {
#ifdef MADV_HUGEPAGE
  const size_t before = bytes_to_next(range.start, kHugePageBytes);
  if (range.bytes < before + kHugePageBytes) return;
  system_calls_.fetch_add(1, std::memory_order_relaxed);
  madvise(range.start + before, (range.bytes - before) / kHugePageBytes * kHugePageBytes,
          MADV_HUGEPAGE);  // a wish: the system may have none
#endif
}

char* SystemMemory::take(size_t bytes) {
  char* const range = take_range(bytes);
  if (range) wish_for_huge_pages({range, bytes});
  return range;
}

char* SystemMemory::take_range(size_t bytes) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (char* const range = free_.take(bytes)) return range;
  }
  const FreeRanges::Range region = map_region(bytes);
  if (region.bytes > bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_.add({region.start + bytes, region.bytes - bytes});
  }
  return region.start;
}

void SystemMemory::give_back(FreeRanges::Range range) noexcept {
  const FreeRanges::Range whole = whole_system_pages(range);
  if (whole.bytes > 0) {
    system_calls_.fetch_add(1, std::memory_order_relaxed);
    madvise(whole.start, whole.bytes, MADV_DONTNEED);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  free_.add(range);
}

void SystemMemory::unmap_free(PageMap& map) noexcept {
  std::vector<FreeRanges::Range> ranges;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ranges = free_.take_all();
  }
  for (const FreeRanges::Range& range : ranges) {
    const FreeRanges::Range whole = whole_system_pages(range);
    map.forget(whole.start, whole.bytes);
    if (whole.bytes > 0) unmap(whole.start, whole.bytes);
    const std::lock_guard<std::mutex> lock(mutex_);
    mapped_ -= whole.bytes;
    trimmed_at_ = mapped_;
    if (whole.bytes == range.bytes) continue;
    const auto before = size_t(whole.start - range.start);
    if (before > 0) free_.add({range.start, before});
    const size_t behind = range.bytes - before - whole.bytes;
    if (behind > 0) free_.add({whole.start + whole.bytes, behind});
  }
  trim_heap();
}

}  // namespace torch_lazy
