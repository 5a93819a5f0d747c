// Address ranges from the operating system, and pages back to it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace torch_lazy {

// Ranges of kDirectBytes and more are mapped and unmapped by themselves, aligned for huge pages and
// marked for them. Smaller ones are cut from regions that stay mapped; giving one back drops its
// pages, and it joins its free neighbours.
class SystemMemory {
 public:
  static constexpr size_t kHugePageBytes = size_t(2) << 20;
  static constexpr size_t kDirectBytes = kHugePageBytes;

  // `bytes` is a multiple of kPageBytes. Null when the system has no more.
  char* take(size_t bytes);
  void give_back(char* range, size_t bytes) noexcept;

  // What of a range becomes resident when its first `used` bytes are written; an upper bound.
  static size_t resident_bytes(size_t bytes, size_t used);

  int64_t system_calls() const { return system_calls_.load(std::memory_order_relaxed); }

  std::mutex& mutex() { return mutex_; }  // for fork

 private:
  char* map_direct(size_t bytes);
  char* map(size_t bytes);
  void unmap(char* range, size_t bytes);
  char* cut(size_t bytes);
  void add_free(char* range, size_t bytes);
  void remove_free(std::map<char*, size_t>::iterator range);

  std::atomic<int64_t> system_calls_{0};
  std::mutex mutex_;              // guards what is below; nothing else is locked while it is held
  std::map<char*, size_t> free_;  // ranges without pages, by address
  std::set<std::pair<size_t, char*>> free_by_size_;
};

}  // namespace torch_lazy
