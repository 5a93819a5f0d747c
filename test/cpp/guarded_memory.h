// Memory at whose ends an access faults.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <new>

namespace torch_lazy::codegen {

// Whole pages between two that nobody may access. What the given bytes leave of them is filled with
// a pattern.
class GuardedMemory {
 public:
  // Which end of the pages the bytes touch. At the first they are aligned as a page is.
  enum class At { kBegin, kEnd };

  GuardedMemory(size_t bytes, At at)
      : page_(size_t(sysconf(_SC_PAGESIZE))),
        pages_(std::max<size_t>((bytes + page_ - 1) / page_, 1) * page_),
        bytes_(bytes) {
    void* const mapped = mmap(nullptr, pages_ + 2 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
                              /*fd=*/-1, /*offset=*/0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    mapped_ = static_cast<char*>(mapped);
    mprotect(mapped_ + page_, pages_, PROT_READ | PROT_WRITE);
    std::fill_n(mapped_ + page_, pages_, kPattern);
    data_ = mapped_ + page_ + (at == At::kEnd ? pages_ - bytes : 0);
  }
  ~GuardedMemory() { munmap(mapped_, pages_ + 2 * page_); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  char* data() const { return data_; }

  // Whether nobody has written beside the bytes.
  bool is_intact() const {
    const auto is_pattern = [](char byte) { return byte == kPattern; };
    return std::all_of(mapped_ + page_, data_, is_pattern) &&
           std::all_of(data_ + bytes_, mapped_ + page_ + pages_, is_pattern);
  }

 private:
  static constexpr char kPattern = 0x5a;

  const size_t page_, pages_, bytes_;
  char* mapped_ = nullptr;
  char* data_ = nullptr;
};

}  // namespace torch_lazy::codegen
