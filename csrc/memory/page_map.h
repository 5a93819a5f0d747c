// From an address to the span that holds it: a table of two levels over the address space, read
// without a lock.
#pragma once

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace torch_lazy {

struct Span;

constexpr size_t kPageBytes = 4096;  // granularity of the map and of spans

// Addresses beyond the map's reach have no span: a system that hands them out is asked for memory
// in vain, and the pool says that it has none.
class PageMap {
 public:
  static constexpr uint32_t kAddressBits = 47;
  static bool reaches(uintptr_t end) { return end <= uintptr_t(1) << kAddressBits; }

  Span* find(const void* address) const {
    const auto page = reinterpret_cast<uintptr_t>(address) / kPageBytes;
    if (page >> (kTopBits + kLeafBits)) return nullptr;
    const Entry* leaf = top_[page >> kLeafBits].load(std::memory_order_acquire);
    return leaf ? leaf[page & (kLeafEntries - 1)].load(std::memory_order_acquire) : nullptr;
  }

  // Raises std::bad_alloc where a new leaf finds no memory.
  void set(const void* address, Span* span) {
    const auto page = reinterpret_cast<uintptr_t>(address) / kPageBytes;
    leaf_of(page)[page & (kLeafEntries - 1)].store(span, std::memory_order_release);
  }

  // No entry of the range is left.
  void forget(const char* range, size_t bytes) noexcept {
    for (size_t at = 0; at < bytes; at += kPageBytes) {
      const auto page = reinterpret_cast<uintptr_t>(range + at) / kPageBytes;
      Entry* leaf = top_[page >> kLeafBits].load(std::memory_order_acquire);
      if (leaf) leaf[page & (kLeafEntries - 1)].store(nullptr, std::memory_order_release);
    }
  }

 private:
  using Entry = std::atomic<Span*>;
  static constexpr uint32_t kLeafBits = 21, kTopBits = kAddressBits - 12 - kLeafBits;
  static constexpr size_t kLeafEntries = size_t(1) << kLeafBits;

  Entry* leaf_of(uintptr_t page) {
    std::atomic<Entry*>& slot = top_[page >> kLeafBits];
    Entry* leaf = slot.load(std::memory_order_acquire);
    if (leaf) return leaf;
    // Zero pages are null pointers; only the pages in use become resident.
    void* made = mmap(nullptr, kLeafEntries * sizeof(Entry), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) throw std::bad_alloc();
    if (slot.compare_exchange_strong(leaf, static_cast<Entry*>(made)))
      return static_cast<Entry*>(made);
    munmap(made, kLeafEntries * sizeof(Entry));  // another thread was first
    return leaf;
  }

  std::array<std::atomic<Entry*>, size_t(1) << kTopBits> top_{};
};

}  // namespace torch_lazy
