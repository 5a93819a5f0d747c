// One candidate distance at a time: proposed by the last place where the same short run of
// operators was seen, kept while the stream goes on equalling itself at that distance.

#include "trace/period.h"

#include <algorithm>
#include <bit>

namespace torch_lazy {
namespace {

constexpr uint64_t kBase = 0x9E3779B97F4A7C15ull;  // odd, so that no operator is multiplied away

constexpr uint64_t power(uint64_t base, size_t exponent) {
  uint64_t result = 1;
  while (exponent-- > 0) result *= base;
  return result;
}

}  // namespace

PeriodDetector::PeriodDetector(size_t start, size_t minimum, size_t repeats, size_t history)
    : start_(std::max(start, kGram)),
      minimum_(std::max<size_t>(minimum, 1)),
      repeats_(std::max<size_t>(repeats, 2)),
      // The whole stretch up to start_ is observed when the window gets that long, so it must be
      // there.
      mask_(std::bit_ceil(std::max(history, start_ + 2)) - 1),
      ring_(mask_ + 1, 0) {}

void PeriodDetector::reset() {
  length_ = 0;
  since_flush_ = 0;
  distance_ = 0;
  run_ = 0;
  reported_ = 0;
  aligned_ = false;
}

void PeriodDetector::restart_window() {
  since_flush_ = 0;
  aligned_ = reported_ != 0;
}

void PeriodDetector::observe() {
  if (length_ == start_ + 1) {
    // The window has just become long: catch up with what was only stored.
    if (latest_.empty()) latest_.assign(mask_ + 1, 0);
    gram_ = 0;
    observed_ = position_ - length_;
  }
  while (observed_ < position_) observe_at(observed_++);
}

void PeriodDetector::observe_at(uint64_t position) {
  const uint64_t seen = position - (position_ - length_);  // hashes of this stream before this one
  const uint64_t hash = at(position);
  gram_ = gram_ * kBase + hash;
  constexpr uint64_t kDrop = power(kBase, kGram);
  if (seen >= kGram) gram_ -= at(position - kGram) * kDrop;

  if (distance_ != 0) {
    if (at(position - distance_) == hash) {
      ++run_;
    } else {
      distance_ = 0;
      run_ = 0;
      reported_ = 0;
      aligned_ = false;
    }
  }
  if (seen + 1 < kGram) return;

  uint32_t& latest = latest_[(gram_ * kBase >> 32) & mask_];
  if (distance_ == 0) {
    const uint64_t distance = static_cast<uint32_t>(static_cast<uint32_t>(position) - latest);
    // The grams must lie in this stream and in the ring; the table may hold older positions.
    if (distance != 0 && distance + kGram <= seen + 1 && distance * repeats_ <= mask_) {
      size_t equal = 0;
      while (equal < kGram && at(position - equal) == at(position - equal - distance)) ++equal;
      if (equal == kGram) {
        distance_ = distance;
        run_ = kGram;
      }
    }
  }
  latest = static_cast<uint32_t>(position);

  // run_ hashes that equal those distance_ before make run_ + distance_ that repeat.
  if (distance_ != 0 && reported_ == 0 &&
      run_ + distance_ >= std::max<uint64_t>(repeats_ * distance_, start_)) {
    const size_t smallest = smallest_period(position);
    reported_ = (minimum_ + smallest - 1) / smallest * smallest;
  }
}

// The candidate may be a multiple of the period, where it was proposed before the stream settled.
// Any shorter period of so long a stretch divides it (Fine and Wilf), so one block decides.
size_t PeriodDetector::smallest_period(uint64_t last) const {
  for (uint64_t divisor = 1; divisor <= distance_ / 2; ++divisor) {
    if (distance_ % divisor != 0) continue;
    bool repeats = true;
    for (uint64_t i = 0; repeats && i + divisor < distance_; ++i) {
      repeats = at(last - i) == at(last - i - divisor);
    }
    if (repeats) return divisor;
  }
  return distance_;
}

}  // namespace torch_lazy
