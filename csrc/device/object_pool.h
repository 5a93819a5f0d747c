// Memory for objects that are made and dropped by the thousand, all of one size: tensors and
// storages of a window live until it is done, so that malloc's own caches overflow with them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

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
    const std::lock_guard<std::mutex> lock(balances_.mutex);
    int64_t sum = without_list_.load(std::memory_order_relaxed);
    for (const Balance& balance : balances_.all) sum += balance.load(std::memory_order_relaxed);
    return sum;
  }

 private:
  // About as many as the longest windows have at once; 2 MiB of the largest objects.
  static constexpr size_t kMostKept = 8192;

  struct Node {
    Node* next;
  };
  // Allocated less released by the threads that have had it, one at a time. Balances are for good:
  // those of threads that a fork left behind still count in the child.
  using Balance = std::atomic<int64_t>;
  struct Balances {
    ForkSafeMutex mutex{LockOrder::kLeaf};  // guards the rest
    std::deque<Balance> all;
    std::vector<Balance*> unused;
  };
  // Made when the library is loaded: what is made during a fork is not covered by it.
  inline static Balances& balances_ = *new Balances;

  struct List {
    Node* head = nullptr;
    size_t count = 0;
    Balance& balance = lease_balance();

    List() { of_thread_ = this; }
    ~List() {
      of_thread_ = nullptr;
      ended_ = true;
      return_balance(balance);
      while (head) ::operator delete(std::exchange(head, head->next));
    }
  };

  static Balance& lease_balance() {
    const std::lock_guard<std::mutex> lock(balances_.mutex);
    if (balances_.unused.empty()) return balances_.all.emplace_back(0);
    Balance& balance = *balances_.unused.back();
    balances_.unused.pop_back();
    return balance;
  }
  static void return_balance(Balance& balance) {
    const std::lock_guard<std::mutex> lock(balances_.mutex);
    balances_.unused.push_back(&balance);
  }

  static void count(List* list, int64_t objects) noexcept {
    if (list) [[likely]]
      list->balance.store(list->balance.load(std::memory_order_relaxed) + objects,
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
  // The same of threads whose list has ended.
  inline static constinit std::atomic<int64_t> without_list_{0};
};

}  // namespace torch_lazy
