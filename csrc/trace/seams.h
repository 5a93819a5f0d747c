// Finds where windows that never repeat leave what they have in common, and where they come to it.
//
// One operation that is given something of another size each time, labels of another length for
// instance, makes a new window of every window that it stands in, and all of it runs eagerly
// although what follows, backward it may be, is the same as ever. So does a branch in a loop, with
// as many paths as there are windows. In windows that were never seen before there are *seams*, at
// which eager windows are flushed:
//   a branch  the end of the beginning that they have in common. What is before it repeats, and
//             what follows does where few windows can;
//   a change  where operations that are given other sizes each time begin or end (trace/changes.h).
//             What is before it repeats, or what follows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "tape/tape.h"
#include "trace/changes.h"
#include "trace/flush_reason.h"

namespace torch_lazy {

// Of the windows of one learner; guarded as that is. A window that was never recorded before costs
// a look at its lines, and at its operations where it begins at a known one; those that begin alike
// are compared, a few times for each beginning.
class Seams {
 public:
  // An eager window ended that was never recorded before.
  void note_new(const Tape& tape);
  // A window ended that was recorded before, or ran as compiled.
  void note_repeated() { end_window(true); }
  // That window was flushed.
  void note_flush(FlushReason reason);
  // An operation was recorded eagerly: the seam that the window has come to.
  std::optional<size_t> find(const Tape& tape) const {
    return seams_.empty() ? std::nullopt : find_seam(tape);
  }
  // The window is flushed at that seam. Returns its kind.
  FlushReason reach(size_t seam);
  // All of it is given other sizes each time, so that it repeats in the same step or never.
  bool is_changing() const { return reached_ != kNone && seams_[reached_].ends_change; }
  void clear() { *this = {}; }

  // First windows of a family that are left alone, since a script may only begin otherwise than it
  // goes on, and windows that are compared without finding a seam.
  static constexpr int kLeftAlone = 2, kMostFutile = 4;

 private:
  static constexpr size_t kKnownBy = 4;  // operations, of a branch
  // A script that does not repeat has ever new beginnings. Of seams the one is forgotten that was
  // not reached for longest.
  static constexpr size_t kMostFamilies = 64, kMostSeams = 32;
  // After so many flushes without a window that repeats, a seam is none. A loop may come to it
  // dozens of times before anything was seen twice.
  static constexpr int kMostInVain = 100;

  // Windows whose first operations are alike, and that began behind a seam of the same kind, or
  // none.
  struct Family {
    int left_alone = 0;  // windows to come that are not compared
    int futile = 0;
    std::vector<uint64_t> signatures;  // of the last window that was
  };

  struct Seam {
    FlushReason kind;  // kBranch or kChange
    // lines_signature() of so many operations up to it: it is one seam in all rounds of a loop.
    uint64_t mark;
    size_t known_by;
    const OperatorInfo* op;  // the last of them, and its line
    LocationId location;
    // Of the shortest window that was found to end there. In shorter ones the lines of a branch are
    // likely to be those of a loop in front of it. Of a change: from the one before it.
    size_t least_operations;
    size_t most_operations = SIZE_MAX;
    bool ends_change = false;
    int flushes_in_vain = 0;
    uint64_t reached = 0;  // flushes at seams until it was one the last time
    bool given_up() const { return flushes_in_vain >= kMostInVain; }
  };

  static constexpr size_t kNone = SIZE_MAX;

  void end_window(bool repeated);
  void compare(Family& family, const Tape& tape);
  std::optional<size_t> find_seam(const Tape& tape) const;
  enum class Added : uint8_t { kNew, kKnown, kGivenUp };
  Added add(const Seam& seam);

  Changes changes_;
  std::unordered_map<uint64_t, Family> families_;
  std::vector<Seam> seams_;
  uint64_t flushes_ = 0;  // at seams
  // The seam behind which the open window began, and at which it is about to be flushed. Not known
  // where that is one that a deferring window ends at.
  size_t begun_at_ = kNone, reached_ = kNone;
  std::optional<FlushReason> behind_;  // the kind of seam that the window before ended at
};

}  // namespace torch_lazy
