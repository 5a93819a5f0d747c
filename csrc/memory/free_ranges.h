// Free ranges of addresses, none beside another: what is added joins its neighbours. Counts how
// many of their bytes were not needed for a while.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace torch_lazy {

// Not thread safe. Calls take time that grows with the logarithm of the ranges. Memory is freed in
// destructors: without memory for a node the process ends, and no range is lost in silence.
class FreeRanges {
 public:
  struct Range {
    char* start;
    size_t bytes;
  };

  void add(Range range) noexcept;
  // From the start of the least range that holds so many, the first of equal ones, so that what is
  // in use stays close together. Null where no range does.
  char* take(size_t bytes) noexcept;
  // The largest range of at most so many bytes; where all are larger, the end of the largest, so
  // that what stays ends at a multiple of `unit` (a power of two). Of 0 bytes where that leaves
  // nothing to take.
  Range take_at_most(size_t bytes, size_t unit) noexcept;
  // All of them, which leaves none.
  std::vector<Range> take_all() noexcept;

  size_t bytes() const { return bytes_; }
  // Begins a period and returns how many bytes were not needed in the one before: the fewest that
  // were free at any moment of it.
  size_t begin_period();

 private:
  using ByAddress = std::map<char*, size_t>;
  void resize(ByAddress::iterator range, size_t bytes);
  void remove(ByAddress::iterator range);
  void count_taken(size_t bytes);

  ByAddress by_address_;
  std::set<std::pair<size_t, char*>> by_size_;
  size_t bytes_ = 0;   // of all
  size_t fewest_ = 0;  // bytes in this period
};

}  // namespace torch_lazy
