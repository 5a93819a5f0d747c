// Memory in spans: large blocks, and slabs of equal small objects. A freed span joins its free
// neighbours and is kept with its pages; the next one is cut from what is kept and pays no page
// fault. So a program whose sizes change at every step needs little more memory than it uses.
//
// What is kept is bounded twice. With the spans in use it stays within the most that was ever in
// use, plus a sixteenth and a little; and what was not needed for ten seconds goes back to the
// system, at a release in the ten seconds after.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "memory/free_ranges.h"
#include "memory/page_map.h"
#include "memory/size_classes.h"
#include "memory/system_memory.h"

namespace torch_lazy {

constexpr size_t kObjectUnit = 64;  // c10::gAlignment
constexpr size_t kLargestObject = size_t(32) << 10;
constexpr uint32_t kObjectClasses = size_class(kLargestObject, kObjectUnit).index + 1;
// No machine has it, and sizes up to here can be rounded up without overflow.
constexpr size_t kLargestBlock = size_t(1) << 46;

// Either one large block or a slab. Its fields below `requested` are the pool's, under its lock;
// those above stay as they are while the span is in use.
struct Span {
  char* start;
  size_t bytes;             // multiple of kPageBytes
  size_t object_bytes = 0;  // of a slab's objects; 0: one large block
  uint32_t object_class = 0;
  uint32_t objects = 1;  // that the slab has room for
  // Bytes asked for, by object, 0 where it is free. Written by whoever owns the object.
  std::unique_ptr<uint32_t[]> requested_of_object;
  size_t requested = 0;  // of a large block

  std::list<Span>::iterator self;
  void* free_objects = nullptr;  // each holds the address of the next
  uint32_t free_count = 0;       // those, and the ones never used
  uint32_t touched = 0;          // objects from the start that were ever used

  uint32_t object_index(const void* object) const {
    return uint32_t(static_cast<const char*>(object) - start) / uint32_t(object_bytes);
  }
};

// Thread safe. Never destroyed: blocks outlive whatever ends at exit.
class MemoryPool {
 public:
  static MemoryPool& instance();

  // The span of a block that is in use, null for memory of others. Nothing else may be asked:
  // entries of freed spans stay.
  Span* find(const void* block) const { return map_.find(block); }

  // Null when the system has no memory, even after everything kept was given back.
  Span* take_large(size_t bytes);
  void free_large(Span& span);

  // Objects of a class, linked through their first word; returns how many, 0 when the system has no
  // memory.
  uint32_t take_objects(uint32_t object_class, size_t object_bytes, uint32_t wanted, void** head);
  void free_objects(void* head);

  // Gives back all that is kept, and its addresses.
  void release_kept();
  // Gives back what was kept for long and not needed. Cheap, and done by every release.
  void age() {
    if (kept_any_.load(std::memory_order_relaxed)) release_idle();
  }

  struct Statistics {
    int64_t reserved, peak_reserved;  // bytes in use or kept
    int64_t spans_from_system;        // allocations that kept memory could not serve
    int64_t system_calls;
  };
  Statistics statistics();
  void reset_peak();

  void lock_for_fork();
  void unlock_after_fork();

 private:
  using Spans = std::list<Span>;
  using Ranges = std::vector<FreeRanges::Range>;
  MemoryPool() = default;

  Span* take_span(size_t bytes);
  Span* add_span(char* start, size_t bytes);
  Span* add_slab(uint32_t object_class, size_t object_bytes);
  // Memory is freed in destructors: without memory for their own few nodes these end the process,
  // and leave no pool that is half changed.
  void keep(Span& span, Spans& from) noexcept;
  Ranges over_limit(size_t coming) noexcept;
  Ranges not_needed() noexcept;
  Ranges take_kept(size_t bytes) noexcept;
  void give_back(const Ranges& ranges) noexcept;
  void release_idle();

  PageMap map_;
  SystemMemory system_;
  std::atomic<bool> kept_any_{false};

  // Guards what is below; only the system's is locked while it is held, for fork.
  std::mutex mutex_;
  Spans in_use_;                               // large blocks and full slabs
  std::array<Spans, kObjectClasses> partial_;  // slabs with free objects
  FreeRanges kept_;
  int64_t period_ends_ = 0;  // of what is kept, in ns
  size_t in_use_bytes_ = 0, most_in_use_ = 0, peak_reserved_ = 0;
  int64_t spans_from_system_ = 0;
};

}  // namespace torch_lazy
