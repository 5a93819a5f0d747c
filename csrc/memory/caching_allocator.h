// The CPU allocator behind device `lazy`: it keeps freed memory for the next allocations. Serves
// lazy storages, the memory of plans and, through AllocateForLazy, what ATen allocates on their
// behalf.
#pragma once

#include <c10/core/Allocator.h>

#include <cstdint>

#include "base/api.h"

namespace torch_lazy {

// For memory of lazy tensors, on every thread at any time. By config().allocator the caching one,
// or the CPU allocator that PyTorch had before.
c10::Allocator& lazy_allocator();

// As a c10::Allocator should be: 64-byte alignment, null for zero bytes, the data pointer is its
// own context. When the system has no memory the CPU allocator that PyTorch had before is asked, so
// its error is the one that is raised.
class CachingAllocator final : public c10::Allocator {
 public:
  static CachingAllocator& instance();

  c10::DataPtr allocate(size_t bytes) override;
  // Frees memory of both allocators, since an allocation may have been handed on.
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* destination, const void* source, std::size_t bytes) const override;

  // Whether the pointer was allocated here, not handed on.
  bool owns(const c10::DataPtr& pointer) const;
  // The allocator that PyTorch had before.
  c10::Allocator& system() const { return system_; }

 private:
  explicit CachingAllocator(c10::Allocator& system) : system_(system) {}

  c10::Allocator& system_;
};

// Bytes and counts since the start of the process, peaks since reset_peak_memory().
struct MemoryStatistics {
  int64_t allocated, peak_allocated;  // asked for and not freed
  int64_t reserved, peak_reserved;    // taken from the system: in use or kept for later
  int64_t allocations;                // of more than zero bytes
  int64_t cache_hits;                 // of those, served without new memory from the system
  int64_t system_calls;               // mmap, munmap, madvise
};
TORCH_LAZY_MODULE_API MemoryStatistics memory_statistics();
TORCH_LAZY_MODULE_API void reset_peak_memory();

// Gives everything that is kept for later back to the system, but for what other threads keep of
// small sizes.
TORCH_LAZY_MODULE_API void empty_cache();

}  // namespace torch_lazy
