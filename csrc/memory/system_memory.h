// Address ranges from the operating system, and pages back to it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "memory/free_ranges.h"
#include "memory/page_map.h"

namespace torch_lazy {

// Ranges are cut from regions. Giving a range back drops its pages and leaves it mapped, so that
// its addresses come to mean nothing else.
//
// Each time that regions are an eighth more, and where the system has no memory, the C library's
// heap is asked for what it keeps free.
//
// Huge pages are asked for where a range has whole ones. Small ranges, which a script takes in its
// first step, would share them; but the first touch of a huge page is slow where a virtual
// machine's host has to find it first (measured: 4 ms against .7 ms for its small pages).
class SystemMemory {
 public:
  static constexpr size_t kHugePageBytes = size_t(2) << 20;

  // Without pages. `bytes` is a multiple of kPageBytes. Null when the system has no more.
  char* take(size_t bytes);
  void give_back(FreeRanges::Range range) noexcept;
  // Gives the addresses of what was given back to the system as well, which others may then be
  // handed: the map forgets them first.
  void unmap_free(PageMap& map) noexcept;

  int64_t system_calls() const { return system_calls_.load(std::memory_order_relaxed); }

  std::mutex& mutex() { return mutex_; }  // for fork

 private:
  char* take_range(size_t bytes);
  void wish_for_huge_pages(FreeRanges::Range range);
  FreeRanges::Range map_region(size_t bytes);
  void note_mapped(size_t bytes);
  char* map(size_t bytes);
  void unmap(char* range, size_t bytes);

  std::atomic<int64_t> system_calls_{0};
  std::mutex mutex_;  // guards what is below; nothing else is locked while it is held
  FreeRanges free_;   // of the regions
  size_t mapped_ = 0, trimmed_at_ = 0;  // bytes of all regions, now and when the heap was trimmed
};

}  // namespace torch_lazy
