#include "memory/memory_pool.h"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/fork.h"

namespace torch_lazy {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kPeriod = 10 * kSecond;
constexpr size_t kSlack = size_t(8) << 20;  // for programs that use little

int64_t coarse_now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return int64_t(time.tv_sec) * kSecond + time.tv_nsec;
}

size_t slab_bytes(size_t object_bytes) {
  return object_bytes <= 4096 ? size_t(64) << 10 : size_t(256) << 10;
}

void* next_of(void* object) {
  void* next;
  std::memcpy(&next, object, sizeof next);
  return next;
}

void set_next(void* object, void* next) {
  std::memcpy(object, &next, sizeof next);
}

[[maybe_unused]] const bool registered_at_fork =
    (register_at_fork(
         LockOrder::kMemory, [] { MemoryPool::instance().lock_for_fork(); },
         [](bool) { MemoryPool::instance().unlock_after_fork(); }),
     true);

}  // namespace

MemoryPool& MemoryPool::instance() {
  static auto* const pool = new MemoryPool;
  return *pool;
}

void MemoryPool::lock_for_fork() {
  mutex_.lock();
  system_.mutex().lock();
}

void MemoryPool::unlock_after_fork() {
  system_.mutex().unlock();
  mutex_.unlock();
}

// ---------------------------------------------------------------- spans

Span* MemoryPool::add_span(char* start, size_t bytes) {
  Span& span = in_use_.emplace_back(Span{.start = start, .bytes = bytes});
  span.self = std::prev(in_use_.end());
  in_use_bytes_ += bytes;
  most_in_use_ = std::max(most_in_use_, in_use_bytes_);
  peak_reserved_ = std::max(peak_reserved_, in_use_bytes_ + kept_.bytes());
  return &span;
}

// In use, of whole pages, and not yet in the map.
Span* MemoryPool::take_span(size_t bytes) {
  const size_t rounded = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  Ranges surplus;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (char* const kept = kept_.take(rounded)) return add_span(kept, rounded);
    surplus = over_limit(rounded);
  }
  give_back(surplus);
  char* start = system_.take(rounded);
  if (!start) {
    release_kept();
    start = system_.take(rounded);
    if (!start) return nullptr;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  ++spans_from_system_;
  return add_span(start, rounded);
}

Span* MemoryPool::take_large(size_t bytes) {
  Span* const span = take_span(bytes);
  if (!span) return nullptr;
  span->requested = bytes;
  map_.set(span->start, span);
  return span;
}

void MemoryPool::free_large(Span& span) {
  Ranges old;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    keep(span, in_use_);
    old = not_needed();
  }
  give_back(old);
}

// Ends the span, which is in `from`.
void MemoryPool::keep(Span& span, Spans& from) noexcept {
  in_use_bytes_ -= span.bytes;
  kept_.add({span.start, span.bytes});
  kept_any_.store(true, std::memory_order_relaxed);
  from.erase(span.self);
}

// ---------------------------------------------------------------- what is kept

// At most `bytes`, in few ranges: what is left of one that is divided ends with a whole huge page,
// and holds what it was needed for if that much was not.
MemoryPool::Ranges MemoryPool::take_kept(size_t bytes) noexcept {
  Ranges taken;
  for (size_t left = bytes; left > 0; left -= taken.back().bytes) {
    const FreeRanges::Range range = kept_.take_at_most(left, SystemMemory::kHugePageBytes);
    if (range.bytes == 0) break;
    taken.push_back(range);
  }
  kept_any_.store(kept_.bytes() > 0, std::memory_order_relaxed);
  return taken;
}

// What has to go before `coming` more bytes are taken from the system.
MemoryPool::Ranges MemoryPool::over_limit(size_t coming) noexcept {
  const size_t in_use = in_use_bytes_ + coming;
  const size_t most = std::max(most_in_use_, in_use);
  const size_t limit = most + most / 16 + kSlack - in_use;
  return take_kept(kept_.bytes() > limit ? kept_.bytes() - limit : 0);
}

// Once a period.
MemoryPool::Ranges MemoryPool::not_needed() noexcept {
  const int64_t now = coarse_now();
  if (now < period_ends_) return {};
  period_ends_ = now + kPeriod;
  return take_kept(kept_.begin_period());
}

void MemoryPool::release_idle() {
  Ranges old;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    old = not_needed();
  }
  give_back(old);
}

void MemoryPool::release_kept() {
  Ranges all;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    all = take_kept(kept_.bytes());
  }
  give_back(all);
  system_.unmap_free(map_);
}

// Without the lock: a gigabyte takes the system a while.
void MemoryPool::give_back(const Ranges& ranges) noexcept {
  for (const FreeRanges::Range& range : ranges) system_.give_back(range);
}

// ---------------------------------------------------------------- slabs

// Has a slab with free objects ready in partial_; null when the system has no memory.
Span* MemoryPool::add_slab(uint32_t object_class, size_t object_bytes) {
  Span* const span = take_span(slab_bytes(object_bytes));
  if (!span) return nullptr;
  span->object_bytes = object_bytes;
  span->object_class = object_class;
  span->objects = span->free_count = uint32_t(span->bytes / object_bytes);
  span->requested_of_object = std::make_unique<uint32_t[]>(span->objects);
  for (size_t at = 0; at < span->bytes; at += kPageBytes) map_.set(span->start + at, span);
  return span;
}

uint32_t MemoryPool::take_objects(uint32_t object_class, size_t object_bytes, uint32_t wanted,
                                  void** head) {
  uint32_t taken = 0;
  std::unique_lock<std::mutex> lock(mutex_);
  Spans& partial = partial_[object_class];
  while (taken < wanted) {
    if (partial.empty()) {
      if (taken > 0) break;
      lock.unlock();
      Span* const made = add_slab(object_class, object_bytes);
      lock.lock();
      if (!made) return 0;
      partial.splice(partial.end(), in_use_, made->self);
    }
    Span& slab = partial.front();
    for (; taken < wanted && slab.free_count > 0; ++taken, --slab.free_count) {
      void* object = slab.free_objects;
      if (object)
        slab.free_objects = next_of(object);
      else
        object = slab.start + slab.touched++ * slab.object_bytes;
      set_next(object, *head);
      *head = object;
    }
    if (slab.free_count == 0) in_use_.splice(in_use_.end(), partial, slab.self);
  }
  return taken;
}

void MemoryPool::free_objects(void* head) {
  Ranges old;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    while (head) {
      void* const object = head;
      head = next_of(object);
      Span& slab = *find(object);
      Spans& partial = partial_[slab.object_class];
      set_next(object, slab.free_objects);
      slab.free_objects = object;
      if (slab.free_count++ == 0) partial.splice(partial.begin(), in_use_, slab.self);
      if (slab.free_count == slab.objects) keep(slab, partial);
    }
    old = not_needed();
  }
  give_back(old);
}

// ---------------------------------------------------------------- statistics

MemoryPool::Statistics MemoryPool::statistics() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return {.reserved = int64_t(in_use_bytes_ + kept_.bytes()),
          .peak_reserved = int64_t(peak_reserved_),
          .spans_from_system = spans_from_system_,
          .system_calls = system_.system_calls()};
}

void MemoryPool::reset_peak() {
  const std::lock_guard<std::mutex> lock(mutex_);
  peak_reserved_ = in_use_bytes_ + kept_.bytes();
}

}  // namespace torch_lazy
