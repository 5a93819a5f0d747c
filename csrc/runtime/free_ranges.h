// Free ranges of addresses, none beside another: what is added joins its neighbours.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>

namespace torch_lazy {

// Not thread safe. Every call takes time that grows with the logarithm of the ranges.
class FreeRanges {
 public:
  struct Range {
    char* start;
    size_t bytes;
  };

  void add(Range range);
  // From the start of the least range that holds so many, the first of equal ones, so that what is
  // in use stays close together. Null where no range does.
  char* take(size_t bytes);
  // The largest range; where it is larger than `wanted`, its last `wanted` bytes, and up to `unit`
  // (a power of two) more, so that what stays ends at a multiple of it. None when all are empty.
  Range take_from_largest(size_t wanted, size_t unit);

  size_t bytes() const { return bytes_; }

 private:
  using ByAddress = std::map<char*, size_t>;
  void resize(ByAddress::iterator range, size_t bytes);
  void remove(ByAddress::iterator range);

  ByAddress by_address_;
  std::set<std::pair<size_t, char*>> by_size_;
  size_t bytes_ = 0;  // of all
};

}  // namespace torch_lazy
