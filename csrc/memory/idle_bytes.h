// How many of the bytes that a cache keeps were needed by nobody for a while.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace torch_lazy {

// Not thread safe.
class IdleBytes {
 public:
  static constexpr int64_t kPeriod = 10'000'000'000;  // ns

  // To be told whenever there are fewer than before.
  void now_are(size_t kept) { least_ = std::min(least_, kept); }

  // Once a period: the bytes that were there all the time since the last one began. `now` in ns.
  size_t taken_at(int64_t now, size_t kept) {
    if (now < next_) return 0;
    next_ = now + kPeriod;
    const size_t idle = least_;
    least_ = kept - idle;
    return idle;
  }

 private:
  size_t least_ = 0;  // in this period
  int64_t next_ = 0;
};

}  // namespace torch_lazy
