// Free small objects of a thread, by class: what makes allocating and freeing them cost
// nanoseconds. An object may be freed by another thread than the one that allocated it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "memory/memory_pool.h"

namespace torch_lazy {

class ObjectCache {
 public:
  // Null when the system has no memory. `bytes` is at least 1 and at most kLargestObject.
  static void* allocate(size_t bytes) {
    const SizeClass wanted = size_class(bytes, kObjectUnit);
    if (ObjectCache* cache = own()) [[likely]] {
      Bin& bin = cache->bins_[wanted.index];
      if (!bin.head) bin.count = refill(wanted, most_kept(wanted.bytes) / 2, &bin.head);
      return pop(bin);
    }
    void* object = nullptr;
    refill(wanted, 1, &object);
    return object;
  }

  static void free(void* object, const Span& slab) {
    if (ObjectCache* cache = own()) [[likely]] {
      Bin& bin = cache->bins_[slab.object_class];
      push(bin, object);
      if (bin.count > most_kept(slab.object_bytes)) bin.give_back(bin.count / 2);
      return;
    }
    Bin bin;
    push(bin, object);
    bin.give_back(1);
  }

  // Hands the calling thread's objects to the pool.
  static void flush();

 private:
  struct Bin {
    void* head = nullptr;  // each object holds the address of the next in its first word
    uint32_t count = 0;
    void give_back(uint32_t number);
  };

  // Bounds what an idle thread holds: 64 KiB of each class.
  static constexpr uint32_t most_kept(size_t object_bytes) {
    const size_t most = (size_t(64) << 10) / object_bytes;
    return most > 64 ? 64 : uint32_t(most);
  }
  static void* pop(Bin& bin) {
    void* const object = bin.head;
    if (!object) return nullptr;
    std::memcpy(&bin.head, object, sizeof bin.head);
    --bin.count;
    return object;
  }
  static void push(Bin& bin, void* object) {
    std::memcpy(object, &bin.head, sizeof bin.head);
    bin.head = object;
    ++bin.count;
  }
  static uint32_t refill(SizeClass wanted, uint32_t number, void** head) {
    return MemoryPool::instance().take_objects(wanted.index, wanted.bytes, number, head);
  }

  // Null in a thread that is ending.
  static ObjectCache* own() {
    if (own_) [[likely]]
      return own_;
    return make_own();
  }
  static ObjectCache* make_own();
  static void end_of_thread(void* cache);
  void give_back_all();

  // A pointer only: a library that is loaded late has little room for thread-local data.
  inline static constinit thread_local ObjectCache* own_ = nullptr;
  inline static constinit thread_local bool ended_ = false;

  std::array<Bin, kObjectClasses> bins_;
};

}  // namespace torch_lazy
