// Finds the period of a stream of operators, to flush a window that nothing else flushes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace torch_lazy {

// Fed one hash for each recorded operator. A loop without a sync point shows as a stream that
// repeats itself; flushing it at its period makes every window of the loop the same.
//
// A period p is reported once the last max(repeats * p, start) hashes repeat with it. The `start`
// part is what keeps the identical layers of one model from passing for the loop around the model.
//
// Until a window is longer than `start`, a push is one store. After that it is a constant amount of
// work. Nothing is allocated after the first long window. Not thread safe: one per recording
// thread.
class PeriodDetector {
 public:
  // start: operators without a flush before a period is looked for. minimum: shortest window worth
  // having. repeats: how often a block must have been seen. history: hashes kept, rounded up to a
  // power of two; periods longer than history / repeats are not found.
  explicit PeriodDetector(size_t start = 2048, size_t minimum = 64, size_t repeats = 3,
                          size_t history = 16384);

  void push(uint64_t operator_hash) {
    ring_[position_ & mask_] = operator_hash;
    ++position_;
    ++since_flush_;
    if (++length_ > start_) [[unlikely]]
      observe();
  }

  // The smallest multiple of the stream's smallest period that is at least `minimum`; nothing while
  // the window is short, or its end does not repeat.
  std::optional<size_t> period() const {
    return reported_ != 0 ? std::optional<size_t>(reported_) : std::nullopt;
  }

  // Whether to flush here: a period was just found, or one period has passed since
  // restart_window().
  bool at_boundary() const { return reported_ != 0 && (!aligned_ || since_flush_ >= reported_); }

  // The window was flushed for another reason: forget the stream.
  void reset();

  // The window was flushed at a period: the stream goes on, and its next boundary is one period
  // away.
  void restart_window();

 private:
  static constexpr size_t kGram = 16;  // hashes that must agree before a distance is tried

  void observe();
  void observe_at(uint64_t position);
  uint64_t at(uint64_t position) const { return ring_[position & mask_]; }
  size_t smallest_period(uint64_t last) const;  // of the stream that ends with position `last`

  size_t start_;
  size_t minimum_;
  size_t repeats_;
  uint64_t mask_;
  std::vector<uint64_t> ring_;  // the last hashes, by position & mask_
  std::vector<uint32_t>
      latest_;                // by hash of kGram hashes: low bits of the last position ending one
  uint64_t position_ = 0;     // hashes ever pushed
  uint64_t length_ = 0;       // since reset
  uint64_t since_flush_ = 0;  // since reset or restart_window
  uint64_t observed_ = 0;     // position up to which the stream has been observed
  uint64_t gram_ = 0;         // rolling hash of the last kGram hashes
  uint64_t distance_ = 0;     // candidate: the stream has equalled itself that far back ...
  uint64_t run_ = 0;          // ... for so many hashes; 0 and 0 without a candidate
  size_t reported_ = 0;       // what period() returns
  bool aligned_ = false;      // the window began at a period's boundary
};

}  // namespace torch_lazy
