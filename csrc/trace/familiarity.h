// Whether a window was begun by code that has begun one before.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace torch_lazy {

// The latest call paths: of those that share a set, the last eight. Of a fixed size and a cache
// line a set, because every window asks, those of a script that makes new code for ever above all.
class RecentPaths {
 public:
  // Whether the path is not among them; it is from now on. Paths are mixed numbers: their low bits
  // choose the set.
  bool insert(uint64_t path);

 private:
  static constexpr size_t kSets = 512;
  struct alignas(64) Set {
    std::array<uint64_t, 8> latest_first{};  // 0 where there is none
  };
  std::vector<Set> sets_ = std::vector<Set>(kSets);
};

// The operations of a familiar window are located as they run; where one was begun by new code,
// nobody will ask where they came from. Not thread safe: one per recorder.
class Familiarity {
 public:
  // A window begins where the program has come by `call_path`, see source_location.h.
  void begin(uint64_t call_path, bool backward);
  // Whether the window is worth learning from. Asked once a window.
  bool teaches();
  // The window was learnt from; `repeated` tells that its operations had been recorded before.
  void learn(size_t operations, bool repeated);
  // The window is over; the next one counts as familiar until it begins.
  void end() { familiar_ = true; }
  bool familiar() const { return familiar_; }

 private:
  static constexpr size_t kMostCredit = 256;

  bool makes_code_anew();

  bool familiar_ = true;
  bool forward_familiar_ = true;  // of the last window that began outside backward
  bool begun_by_new_code_ = false;
  RecentPaths begun_at_;
  size_t credit_ = kMostCredit;     // unfamiliar windows that will be learnt from
  size_t without_credit_ = 0;       // unfamiliar windows since that was used up
  size_t new_operations_ = 0;       // in windows begun by new code, the latest ones learnt from
  size_t repeated_operations_ = 0;  // of those, in windows recorded before
};

}  // namespace torch_lazy
