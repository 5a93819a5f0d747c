#include "runtime/memory_pool.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace torch_lazy {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kKeptAtMost = 10 * kSecond;
constexpr int64_t kAgeingEvery = kSecond;
constexpr int64_t kSlack = int64_t(32) << 20;  // for programs that use little

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

// A child must not inherit a lock from a thread it does not have. Installed when the library is
// loaded: handlers installed later run before this one, so that locks which are held while memory
// is allocated are taken first.
[[maybe_unused]] const int fork_handlers =
    pthread_atfork([] { MemoryPool::instance().lock_for_fork(); },
                   [] { MemoryPool::instance().unlock_after_fork(); },
                   [] { MemoryPool::instance().unlock_after_fork(); });

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

Span* MemoryPool::take_kept(uint32_t span_class, size_t used) {
  // One class further is a quarter larger at most.
  for (uint32_t i = span_class; i < std::min(span_class + 2, kSpanClasses); ++i) {
    if (kept_[i].empty()) continue;
    Span& span = kept_[i].back();  // the one whose pages are likeliest in the cache
    in_use_.splice(in_use_.end(), kept_[i], span.self);
    kept_bytes_ -= int64_t(span.resident);
    span.resident = std::max(span.resident, SystemMemory::resident_bytes(span.bytes, used));
    in_use_bytes_ += int64_t(span.resident);
    count_reserved();
    return &span;
  }
  return nullptr;
}

Span* MemoryPool::take_new(size_t bytes, size_t used) {
  char* start = system_.take(bytes);
  if (!start) {
    release_kept();
    start = system_.take(bytes);
    if (!start) return nullptr;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  Span& span = in_use_.emplace_back(Span{.start = start, .bytes = bytes});
  span.self = std::prev(in_use_.end());
  span.resident = SystemMemory::resident_bytes(bytes, used);
  in_use_bytes_ += int64_t(span.resident);
  ++spans_from_system_;
  count_reserved();
  return &span;
}

void MemoryPool::count_reserved() {
  most_in_use_ = std::max(most_in_use_, in_use_bytes_);
  peak_reserved_ = std::max(peak_reserved_, in_use_bytes_ + kept_bytes_);
}

// In use, with `used` bytes from its start about to be written, and not yet in the map.
Span* MemoryPool::take_span(size_t bytes, size_t used) {
  const SizeClass wanted = size_class(bytes, kPageBytes);
  Spans surplus;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (Span* span = take_kept(wanted.index, used)) return span;
    surplus = over_limit(int64_t(SystemMemory::resident_bytes(wanted.bytes, used)));
  }
  give_back(surplus);
  return take_new(wanted.bytes, used);
}

Span* MemoryPool::take_large(size_t bytes) {
  Span* const span = take_span(bytes, bytes);
  if (!span) return nullptr;
  span->requested = bytes;
  enter(*span, 1);
  return span;
}

// The map knows the first pages of the span: entries of an earlier use are right still.
void MemoryPool::enter(Span& span, size_t entries) {
  for (; span.map_entries < entries; ++span.map_entries)
    map_.set(span.start + span.map_entries * kPageBytes, &span);
}

void MemoryPool::free_large(Span& span) {
  Spans old;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const int64_t now = coarse_now();
    keep(span, in_use_, now);
    old = idle(now);
  }
  give_back(old);
}

// From `from` to the kept spans. The span's entries in the map stay.
void MemoryPool::keep(Span& span, Spans& from, int64_t now) {
  const uint32_t span_class = size_class(span.bytes, kPageBytes).index;
  span.object_bytes = 0;
  span.requested_of_object.reset();
  span.kept_since = now;
  in_use_bytes_ -= int64_t(span.resident);
  kept_bytes_ += int64_t(span.resident);
  kept_any_.store(true, std::memory_order_relaxed);
  kept_[span_class].splice(kept_[span_class].end(), from, span.self);
}

// ---------------------------------------------------------------- what is kept

void MemoryPool::take_oldest(Spans& kept, Spans& to) {
  kept_bytes_ -= int64_t(kept.front().resident);
  to.splice(to.end(), kept, kept.begin());
}

// The spans kept longest that have to go before `coming` more bytes become resident.
MemoryPool::Spans MemoryPool::over_limit(int64_t coming) {
  const int64_t most = std::max(most_in_use_, in_use_bytes_ + coming);
  const int64_t kept_limit = most + most / 16 + kSlack - in_use_bytes_ - coming;
  Spans surplus;
  while (kept_bytes_ > std::max<int64_t>(kept_limit, 0)) {
    Spans* oldest = nullptr;
    for (Spans& spans : kept_)
      if (!spans.empty() && (!oldest || spans.front().kept_since < oldest->front().kept_since))
        oldest = &spans;
    take_oldest(*oldest, surplus);
  }
  return surplus;
}

// The spans kept for too long; looks for them once in a while.
MemoryPool::Spans MemoryPool::idle(int64_t now) {
  Spans found;
  if (now < next_ageing_) return found;
  next_ageing_ = now + kAgeingEvery;
  for (Spans& spans : kept_)
    while (!spans.empty() && spans.front().kept_since < now - kKeptAtMost)
      take_oldest(spans, found);
  kept_any_.store(kept_bytes_ > 0, std::memory_order_relaxed);
  return found;
}

void MemoryPool::release_idle() {
  Spans old;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    old = idle(coarse_now());
  }
  give_back(old);
}

void MemoryPool::release_kept() {
  Spans all;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (Spans& spans : kept_) all.splice(all.end(), spans);
    kept_bytes_ = 0;
    kept_any_.store(false, std::memory_order_relaxed);
  }
  give_back(all);
}

// Without the lock: a gigabyte takes the system a while.
void MemoryPool::give_back(const Spans& spans) {
  for (const Span& span : spans) {
    for (size_t i = 0; i < span.map_entries; ++i) map_.set(span.start + i * kPageBytes, nullptr);
    system_.give_back(span.start, span.bytes);
  }
}

// ---------------------------------------------------------------- slabs

// Has a slab with free objects ready in partial_; null when the system has no memory.
Span* MemoryPool::add_slab(uint32_t object_class, size_t object_bytes) {
  const size_t bytes = slab_bytes(object_bytes);
  Span* const span = take_span(bytes, bytes);
  if (!span) return nullptr;
  span->object_bytes = object_bytes;
  span->object_class = object_class;
  span->objects = span->free_count = uint32_t(span->bytes / object_bytes);
  span->requested_of_object = std::make_unique<uint32_t[]>(span->objects);
  span->free_objects = nullptr;
  span->touched = 0;
  enter(*span, span->bytes / kPageBytes);
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
  Spans old;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const int64_t now = coarse_now();
    while (head) {
      void* const object = head;
      head = next_of(object);
      Span& slab = *find(object);
      Spans& partial = partial_[slab.object_class];
      set_next(object, slab.free_objects);
      slab.free_objects = object;
      if (slab.free_count++ == 0) partial.splice(partial.begin(), in_use_, slab.self);
      if (slab.free_count == slab.objects) keep(slab, partial, now);
    }
    old = idle(now);
  }
  give_back(old);
}

// ---------------------------------------------------------------- statistics

MemoryPool::Statistics MemoryPool::statistics() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return {.reserved = in_use_bytes_ + kept_bytes_,
          .peak_reserved = peak_reserved_,
          .spans_from_system = spans_from_system_,
          .system_calls = system_.system_calls()};
}

void MemoryPool::reset_peak() {
  const std::lock_guard<std::mutex> lock(mutex_);
  peak_reserved_ = in_use_bytes_ + kept_bytes_;
}

}  // namespace torch_lazy
