// Memory for objects that are made and dropped by the thousand, all of one size: tensors and
// storages of a window live until it is done, so that malloc's own caches overflow with them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <unordered_set>
#include <utility>

#include "base/fork.h"

namespace torch_lazy {

// One free list a thread and object type. An object may be released by another thread than the one
// that allocated it; each thread keeps what it releases, up to a limit, until it ends.
template <class Object>
class ObjectPool {
 public:
  static void* allocate() {
    List* list = of_thread_;
    if (!list) [[unlikely]]
      list = start();
    count(list, 1);
    if (!list || !list->head) [[unlikely]]
      return ::operator new(sizeof(Object));
    --list->count;
    return std::exchange(list->head, list->head->next);
  }

  static void release(void* object) noexcept {
    List* list = of_thread_;
    if (!list) [[unlikely]]
      list = start();
    count(list, -1);
    if (!list || list->count >= kMostKept) [[unlikely]]
      return ::operator delete(object);
    ++list->count;
    list->head = new (object) Node{list->head};
  }

  // How many objects there are, of all threads: exact while no other thread makes or drops any.
  static int64_t in_use() {
    const std::lock_guard<std::mutex> lock(all().mutex);
    int64_t sum = without_list_.load(std::memory_order_relaxed);
    for (const List* list : all().lists) sum += list->in_use.load(std::memory_order_relaxed);
    return sum;
  }

 private:
  // About as many as the longest windows have at once; 2 MiB of the largest objects.
  static constexpr size_t kMostKept = 8192;

  struct Node {
    Node* next;
  };
  struct List {
    Node* head = nullptr;
    size_t count = 0;
    // Allocated less released by the thread, which alone writes it.
    std::atomic<int64_t> in_use{0};

    List() {
      of_thread_ = this;
      const std::lock_guard<std::mutex> lock(all().mutex);
      all().lists.insert(this);
    }
    ~List() {
      of_thread_ = nullptr;
      ended_ = true;
      {
        const std::lock_guard<std::mutex> lock(all().mutex);
        all().lists.erase(this);
        without_list_ += in_use.load(std::memory_order_relaxed);
      }
      while (head) ::operator delete(std::exchange(head, head->next));
    }
  };

  struct AllLists {
    ForkSafeMutex mutex{LockOrder::kLeaf};  // guards `lists`
    std::unordered_set<const List*> lists;
  };
  static AllLists& all() {
    static AllLists& instance = *new AllLists;
    return instance;
  }

  static void count(List* list, int64_t objects) noexcept {
    if (list) [[likely]]
      list->in_use.store(list->in_use.load(std::memory_order_relaxed) + objects,
                         std::memory_order_relaxed);
    else
      without_list_ += objects;
  }

  [[gnu::noinline]] static List* start() noexcept {
    // What is released after the thread's list has ended goes back at once.
    if (ended_) return nullptr;
    static thread_local List list;
    return &list;
  }

  // The initial-exec model saves a call of __tls_get_addr; glibc keeps room for such variables in
  // libraries loaded late, as long as they are as small as a pointer.
#if defined(__GLIBC__)
  [[gnu::tls_model("initial-exec")]]
#endif
  inline static constinit thread_local List* of_thread_ = nullptr;
  inline static constinit thread_local bool ended_ = false;
  // As List::in_use, of threads that have ended.
  inline static constinit std::atomic<int64_t> without_list_{0};
};

}  // namespace torch_lazy
