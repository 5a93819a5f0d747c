// The keys of kernels, in memory and on disk; the kernels used last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "backend/cpu/kernel_compiler.h"

namespace torch_lazy {

// By what a kernel is found in a process. Comments are left out of sources before they come here.
struct KernelKey {
  KernelTarget target;
  std::string name;
  std::string source;
  bool operator==(const KernelKey&) const = default;
};

// By what its object is found on disk: `machine` describes the compiler and what it compiles for,
// see kernel_target_description().
std::string disk_key(const KernelKey& key, const std::string& machine);

// Thread-safe. Holds the most recently used kernels up to a number of bytes of source and object;
// a kernel that was dropped lives on with its users.
class KernelCache {
 public:
  using Kernel = std::shared_ptr<const CompiledKernel>;

  using Key = KernelKey;

  explicit KernelCache(size_t byte_limit) : byte_limit_(byte_limit) {}

  // The kernel of that key. Where there is none, `make` is called without the lock, while other
  // threads that want the same wait for it. What it raises is raised to all of them and not kept.
  // `hit` tells whether `make` was not called.
  Kernel get(const Key& key, const std::function<Kernel()>& make, bool& hit);

  // Around a fork. A child forgets the kernels that threads of its parent are making.
  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork(bool in_child);

 private:
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };
  struct Entry {
    const Key* key;  // the map's
    std::shared_future<Kernel> kernel;
    size_t bytes = 0;  // 0 until it is made
  };
  using Entries = std::list<Entry>;

  void drop_oldest();

  const size_t byte_limit_;
  std::mutex mutex_;  // guards what is below
  Entries entries_;   // the last used first
  std::unordered_map<Key, Entries::iterator, KeyHash> by_key_;
  size_t bytes_ = 0;
};

}  // namespace torch_lazy
