// Memory for objects that are made and dropped by the thousand, all of one size: tensors and
// storages of a window live until it is done, so that malloc's own caches overflow with them.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

namespace torch_lazy {

// One free list a thread and object type. An object may be released by another thread than the one
// that allocated it; each thread keeps what it releases, up to a limit, until it ends.
template <class Object>
class ObjectPool {
 public:
  static void* allocate() {
    List* const list = of_thread_;
    if (!list || !list->head) [[unlikely]]
      return ::operator new(sizeof(Object));
    --list->count;
    return std::exchange(list->head, list->head->next);
  }

  static void release(void* object) noexcept {
    List* list = of_thread_;
    if (!list) [[unlikely]]
      list = start();
    if (!list || list->count >= kMostKept) [[unlikely]]
      return ::operator delete(object);
    ++list->count;
    list->head = new (object) Node{list->head};
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

    List() { of_thread_ = this; }
    ~List() {
      of_thread_ = nullptr;
      ended_ = true;
      while (head) ::operator delete(std::exchange(head, head->next));
    }
  };

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
};

}  // namespace torch_lazy
