#include "memory/caching_allocator.h"

#include <c10/core/CPUAllocator.h>

#include <atomic>

#include "base/config.h"
#include "memory/memory_pool.h"
#include "memory/object_cache.h"

namespace torch_lazy {
namespace {

// Counted by every thread. Global: the allocator is.
struct Counters {
  std::atomic<int64_t> allocated{0}, peak{0}, allocations{0};

  void add(size_t bytes) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    const int64_t now =
        allocated.fetch_add(int64_t(bytes), std::memory_order_relaxed) + int64_t(bytes);
    int64_t highest = peak.load(std::memory_order_relaxed);
    while (now > highest && !peak.compare_exchange_weak(highest, now, std::memory_order_relaxed)) {
    }
  }
  void remove(size_t bytes) { allocated.fetch_sub(int64_t(bytes), std::memory_order_relaxed); }
};
constinit Counters counters;

void* allocate_block(size_t bytes) {
  MemoryPool& pool = MemoryPool::instance();
  if (bytes <= kLargestObject) {
    void* const object = ObjectCache::allocate(bytes);
    if (!object) return nullptr;
    Span& slab = *pool.find(object);
    slab.requested_of_object[slab.object_index(object)] = uint32_t(bytes);
    return object;
  }
  if (bytes > kLargestBlock) return nullptr;
  const Span* const span = pool.take_large(bytes);
  return span ? span->start : nullptr;
}

// The deleter of everything allocated here, and of what was handed on where the raw interface hides
// which it is.
void free_block(void* block) {
  if (!block) return;
  MemoryPool& pool = MemoryPool::instance();
  Span* const span = pool.find(block);
  if (!span) [[unlikely]]
    return CachingAllocator::instance().system().raw_deallocate(block);
  c10::profiledCPUMemoryReporter().Delete(block);
  if (span->object_bytes == 0) {
    counters.remove(span->requested);
    return pool.free_large(*span);
  }
  counters.remove(span->requested_of_object[span->object_index(block)]);
  ObjectCache::free(block, *span);
}

// PyTorch's allocator says what is wrong; scripts catch it by the type that accelerators raise.
c10::DataPtr allocate_after_all(c10::Allocator& system, size_t bytes) {
  try {
    return system.allocate(bytes);
  } catch (const c10::Error& error) {
    throw c10::OutOfMemoryError({__func__, __FILE__, uint32_t(__LINE__)}, error.msg());
  }
}

}  // namespace

c10::Allocator& lazy_allocator() {
  CachingAllocator& caching = CachingAllocator::instance();
  if (config().allocator == AllocatorKind::kSystem) return caching.system();
  return caching;
}

CachingAllocator& CachingAllocator::instance() {
  static auto* const allocator = new CachingAllocator(*c10::GetCPUAllocator());
  return *allocator;
}

c10::DataPtr CachingAllocator::allocate(size_t bytes) {
  const c10::Device cpu(c10::kCPU);
  if (bytes == 0) return {nullptr, nullptr, &free_block, cpu};
  void* const block = allocate_block(bytes);
  if (!block) [[unlikely]]
    return allocate_after_all(system_, bytes);
  counters.add(bytes);
  c10::profiledCPUMemoryReporter().New(block, bytes);
  return {block, block, &free_block, cpu};
}

c10::DeleterFnPtr CachingAllocator::raw_deleter() const {
  return system_.raw_deleter() ? &free_block : nullptr;
}

void CachingAllocator::copy_data(void* destination, const void* source, std::size_t bytes) const {
  system_.copy_data(destination, source, bytes);
}

bool CachingAllocator::owns(const c10::DataPtr& pointer) const {
  return pointer.get_deleter() == &free_block;
}

MemoryStatistics memory_statistics() {
  const MemoryPool::Statistics pool = MemoryPool::instance().statistics();
  const int64_t allocations = counters.allocations.load(std::memory_order_relaxed);
  return {.allocated = counters.allocated.load(std::memory_order_relaxed),
          .peak_allocated = counters.peak.load(std::memory_order_relaxed),
          .reserved = pool.reserved,
          .peak_reserved = pool.peak_reserved,
          .allocations = allocations,
          .cache_hits = allocations - pool.spans_from_system,
          .system_calls = pool.system_calls};
}

void reset_peak_memory() {
  counters.peak.store(counters.allocated.load(std::memory_order_relaxed),
                      std::memory_order_relaxed);
  MemoryPool::instance().reset_peak();
}

void empty_cache() {
  ObjectCache::flush();
  MemoryPool::instance().release_kept();
}

}  // namespace torch_lazy
