// A device's memory: what is allocated, and what is known of each byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "simt/races.h"

namespace torch_lazy::simt {

// Memory that lies in one piece: an allocation, or a shared variable of the block that runs.
struct Region {
  std::string name;
  char* begin = nullptr;
  size_t bytes = 0;
  bool shared = false;
  std::vector<uint8_t> initialized;    // of each byte
  std::vector<ByteAccesses> accesses;  // of each byte; in this launch, or if shared by this block

  bool holds(const char* address, size_t count) const {
    return address >= begin && count <= bytes && address <= begin + (bytes - count);
  }
};

// Not synchronized.
class DeviceMemory {
 public:
  // At a multiple of `alignment` and of no higher power of two, so that what needs a higher one is
  // found. Holds nothing yet: who reads it before it is written is reported.
  void* allocate(size_t bytes, size_t alignment, std::string name);
  // The same with a copy of host memory.
  void* upload(const void* from, size_t bytes, size_t alignment, std::string name);
  void free(void* memory);
  // As a copy from the host or a fill leaves it.
  void mark_initialized(const void* memory, size_t bytes);

  // That holds the address, or null.
  Region* find(const void* address);
  // "in0 + 400 of 400 bytes": where an address is, by the allocation that holds it, held it before
  // it was freed, or is the nearest.
  std::string describe(const void* address);

  template <class Visit>
  void for_each(const Visit& visit) {
    for (auto& [begin, allocation] : allocations_) visit(allocation.region);
  }

 private:
  struct Allocation {
    std::unique_ptr<char[]> memory;
    Region region;
  };
  std::map<const char*, Allocation> allocations_;
  std::deque<Region> freed_;  // the last ones, without what is known of their bytes
};

}  // namespace torch_lazy::simt
