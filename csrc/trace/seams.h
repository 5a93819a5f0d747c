// Finds where windows that never repeat come to what they have in common.
//
// One operation that is given something of another size each time, labels of another length for
// instance, makes a new window of every window that it stands in, and all of it runs eagerly
// although what follows, backward it may be, is the same as ever. Where windows that were never
// seen before end alike, the operations that the common end begins with are a *seam*: an eager
// window is flushed behind them, and the next one repeats.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tape/tape.h"

namespace torch_lazy {

// Of the windows of one learner; guarded as that is. A window that ends costs a look at its last
// operations; those that end alike are compared, a few times for each end.
class Seams {
 public:
  // An eager window ended that was never recorded before.
  void note_new(const Tape& tape);
  // A window ended that was recorded before, or ran as compiled.
  void note_repeated() { end_window(true); }
  // A window was flushed for another reason than a seam: each may be one again.
  void rearm();
  // An operation was recorded eagerly: whether its window shall be flushed behind it. Each seam is
  // one once until rearm(): loops come to the same operations again and again.
  bool at_seam(const Tape& tape) { return !seams_.empty() && is_at_seam(tape); }
  void clear() { *this = {}; }

  // Operations that windows have to have in common: fewer are not worth a window of their own.
  static constexpr size_t kLeast = 32;
  // Windows with one end that are left alone, and that are compared without finding a seam.
  static constexpr int kIgnored = 2, kMostFutile = 4;

 private:
  static constexpr size_t kOperations = 4;  // by which a seam is recognized
  // A script that does not repeat has ever new ends.
  static constexpr size_t kMostEnds = 64, kMostSeams = 16;
  // After so many flushes behind which nothing ever repeated, a seam is none.
  static constexpr int kMostInVain = 8;

  struct End {
    int seen = 0, futile = 0;
    std::vector<uint64_t> signatures;  // of the last window, by operation
  };
  struct Seam {
    std::array<uint64_t, kOperations> signatures;  // of the operations up to it
    const OperatorInfo* op;                        // the last of them, and its line
    LocationId location;
    bool armed = true;
    int flushes_in_vain = 0;
  };

  static constexpr size_t kNone = SIZE_MAX;

  void end_window(bool repeated);
  static size_t first_of_its_own(c10::ArrayRef<uint64_t> signatures, size_t begin);
  bool is_at_seam(const Tape& tape);
  // That begins with the tape's operation `begin`. False: it is known, or there are too many.
  bool add(const Tape& tape, c10::ArrayRef<uint64_t> signatures, size_t begin);

  // By operators and lines of the last kLeast operations, and the seam behind which they began.
  std::unordered_map<uint64_t, End> ends_;
  std::vector<Seam> seams_;
  size_t begun_at_ = kNone;  // the seam behind which the open window began
  size_t reached_ = kNone;   // at which it is about to be flushed
};

}  // namespace torch_lazy
