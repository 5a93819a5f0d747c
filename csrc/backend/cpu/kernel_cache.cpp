#include "backend/cpu/kernel_cache.h"

#include <xxhash.h>

#include <utility>

namespace torch_lazy {

std::string disk_key(const KernelKey& key, const std::string& machine) {
  return machine + '\n' + key.name + '\n' + key.source;
}

size_t KernelCache::KeyHash::operator()(const Key& key) const {
  const uint64_t seed =
      XXH3_64bits_withSeed(key.name.data(), key.name.size(), static_cast<uint64_t>(key.target));
  return XXH3_64bits_withSeed(key.source.data(), key.source.size(), seed);
}

KernelCache::Kernel KernelCache::get(const Key& key, const std::function<Kernel()>& make,
                                     bool& hit) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (const auto found = by_key_.find(key); found != by_key_.end()) {
    hit = true;
    entries_.splice(entries_.begin(), entries_, found->second);
    const std::shared_future<Kernel> kernel = found->second->kernel;
    lock.unlock();
    return kernel.get();
  }
  hit = false;
  std::promise<Kernel> promise;
  const auto inserted = by_key_.emplace(key, Entries::iterator()).first;
  entries_.push_front({&inserted->first, promise.get_future().share()});
  const auto entry = inserted->second = entries_.begin();
  lock.unlock();
  try {
    Kernel kernel = make();
    promise.set_value(kernel);
    lock.lock();
    entry->bytes = key.source.size() + kernel->object.size();
    bytes_ += entry->bytes;
    drop_oldest();
    return kernel;
  } catch (...) {
    promise.set_exception(std::current_exception());
    lock.lock();
    by_key_.erase(key);
    entries_.erase(entry);
    throw;
  }
}

void KernelCache::unlock_after_fork(bool in_child) {
  if (in_child)
    entries_.remove_if([&](const Entry& entry) {
      const bool unfinished = entry.bytes == 0;
      if (unfinished) by_key_.erase(Key(*entry.key));
      return unfinished;
    });
  mutex_.unlock();
}

// Never one that is being made: its thread holds an iterator to it.
void KernelCache::drop_oldest() {
  for (auto entry = entries_.end(); bytes_ > byte_limit_ && entry != entries_.begin();) {
    --entry;
    if (entry->bytes == 0) continue;
    bytes_ -= entry->bytes;
    by_key_.erase(*entry->key);
    entry = entries_.erase(entry);
  }
}

}  // namespace torch_lazy
