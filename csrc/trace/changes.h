// Finds operations that are given something of another size each time, in windows that are new
// because of them: those that read a cache that grows with every token, or labels of another
// length. What stands between such *changing* operations repeats, and wants windows of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tape/tape.h"

namespace torch_lazy {

// Where changing operations begin or end in a window.
struct Border {
  size_t at;  // it lies in front of this operation
  // From the border before, or the begin of the window, to this one.
  size_t operations;
  bool ends_change;  // they are the changing ones
  // It is known again by so many operations in front of it, with lines_signature() `mark`. Fewer
  // than kMostKnownBy are all that stands there where the window is flushed at the border before.
  static constexpr size_t kMostKnownBy = 8;
  size_t known_by() const { return std::min(operations, kMostKnownBy); }
  bool is_known_by_all() const { return operations < kMostKnownBy; }
  uint64_t mark = 0;
};

// Of the windows of one learner; guarded as that is.
class Changes {
 public:
  struct Found {
    bool likely = false;          // one was found before
    std::vector<Border> borders;  // those that were found in enough stretches
  };
  // A window that was never recorded before has ended. One with operators or lines that were never
  // met before takes another path, and nothing is found in it. One that begins with such is not
  // looked at any further, since a script that never repeats has many.
  Found note_new(const Tape& tape);
  // A window was flushed for another reason than a seam. What was met since this was told last is
  // as new as ever: layers of one step that are given the same sizes, in windows of their own.
  void note_end_of_stretch() {
    ++stretch_;
    windows_ = 0;
  }

  // A border is one where it was found in new windows of so many stretches: in fewer it may be that
  // a script only begins otherwise than it goes on, or has a few sizes.
  static constexpr int kLeastStretches = 4;

 private:
  // A program may have no stretch that ends: after so many new windows another one begins.
  static constexpr size_t kMostWindows = 64;
  // Then all are forgotten.
  static constexpr size_t kMostCalls = 32768, kMostLines = 32768, kMostBorders = 1024;

  // The borders of a window whose operations are new where `is_new` says so.
  static std::vector<Border> borders(const std::vector<bool>& is_new);

  std::unordered_set<uint64_t> lines_;  // that were met, by signature
  // Calls that were met in windows that begin at such a line, by signature, and the stretch of the
  // first.
  std::unordered_map<uint64_t, uint64_t> calls_;
  uint64_t stretch_ = 1;
  size_t windows_ = 0;  // of the stretch
  struct Candidate {
    int stretches = 0;
    uint64_t last_stretch = 0;
  };
  std::unordered_map<uint64_t, Candidate> candidates_;  // by the border's mark
};

}  // namespace torch_lazy
