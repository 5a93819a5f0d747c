// Offsets in one block of memory for values that live during parts of a run only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace torch_lazy {

// Values whose lives do not overlap share memory: first fit by time of birth, each in the
// lowest gap that is free for all of its life.
class Arena {
 public:
  // A value that is born at a step; returns its index.
  size_t add(int64_t bytes, size_t step);
  void use(size_t index, size_t step);
  // Call once, after all values and uses are known.
  void assign();
  int64_t offset(size_t index) const { return values_[index].offset; }
  int64_t bytes() const { return bytes_; }

 private:
  struct Value {
    int64_t bytes;
    size_t first, last;  // steps
    int64_t offset = 0;
  };
  std::vector<Value> values_;
  int64_t bytes_ = 0;
};

}  // namespace torch_lazy
