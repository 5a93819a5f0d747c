#include "memory/object_cache.h"

#include <pthread.h>

namespace torch_lazy {

void ObjectCache::Bin::give_back(uint32_t number) {
  if (number == 0) return;
  void* const first = head;
  void* last = first;
  for (uint32_t i = 1; i < number; ++i) std::memcpy(&last, last, sizeof last);
  std::memcpy(&head, last, sizeof head);
  count -= number;
  void* const end = nullptr;
  std::memcpy(last, &end, sizeof end);
  MemoryPool::instance().free_objects(first);
}

void ObjectCache::give_back_all() {
  for (Bin& bin : bins_) bin.give_back(bin.count);
}

void ObjectCache::flush() {
  if (own_) own_->give_back_all();
}

// A key, not a thread-local object: its destructor runs after those of all thread-local objects,
// which may still free tensors.
ObjectCache* ObjectCache::make_own() {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    pthread_key_create(&made, &end_of_thread);
    return made;
  }();
  if (ended_) return nullptr;
  own_ = new ObjectCache;
  pthread_setspecific(key, own_);
  return own_;
}

void ObjectCache::end_of_thread(void* cache) {
  ended_ = true;
  own_ = nullptr;
  static_cast<ObjectCache*>(cache)->give_back_all();
  delete static_cast<ObjectCache*>(cache);
}

}  // namespace torch_lazy
