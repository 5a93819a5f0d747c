// Finds where windows that never repeat leave what they have in common, and where they come to it.
//
// One operation that is given something of another size each time, labels of another length for
// instance, makes a new window of every window that it stands in, and all of it runs eagerly
// although what follows, backward it may be, is the same as ever. So does a branch in a loop, with
// as many paths as there are windows. Where windows that were never seen before have a beginning or
// an end in common, there is a *seam*, behind which eager windows are flushed:
//   a branch  the last operations of the beginning that they have in common. What is before it
//             repeats, and what follows does where few windows can;
//   a merge   the first operations of the end that they have in common. What follows repeats.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "tape/tape.h"
#include "trace/flush_reason.h"

namespace torch_lazy {

// Of the windows of one learner; guarded as that is. A window that was never recorded before costs
// a look at its first and last operations, and those that begin or end alike are compared, a few
// times for each beginning and end.
class Seams {
 public:
  // An eager window ended that was never recorded before.
  void note_new(const Tape& tape);
  // A window ended that was recorded before, or ran as compiled.
  void note_repeated() { end_window(true); }
  // That window was flushed. Where that was for another reason than a seam, each merge may be one
  // again.
  void note_flush(FlushReason reason);
  bool empty() const { return seams_.empty(); }
  // An operation was recorded eagerly: the seam that the window has come to. A merge is one once
  // until a flush for another reason, since loops come to the same operations again and again; a
  // branch in a loop is one each time, at least so many operations behind the last.
  std::optional<size_t> find(const Tape& tape) const {
    return seams_.empty() ? std::nullopt : find_seam(tape);
  }
  // The window is flushed at that seam. Returns its kind.
  FlushReason reach(size_t seam);
  void clear() { *this = {}; }

  // Operations that windows have to have in common: fewer are not worth a window of their own.
  static constexpr size_t kLeastBeforeBranch = 8, kLeastAfterMerge = 32;
  // First windows of a family that are left alone, since a script may only begin otherwise than it
  // goes on, and windows that are compared without finding a seam.
  static constexpr int kLeftAlone = 2, kMostFutile = 4;

 private:
  static constexpr size_t kOperations = 4;  // by which a seam is recognized
  // A script that does not repeat has ever new beginnings and ends. Of seams the one is forgotten
  // that was not reached for longest.
  static constexpr size_t kMostFamilies = 64, kMostSeams = 16;
  // After so many flushes without a window that repeats, a seam is none. A loop with a branch may
  // come to it dozens of times before anything was seen twice.
  static constexpr int kMostMergesInVain = 8, kMostBranchesInVain = 100;

  // What operations of a window are alike by: signatures, or operators and lines.
  using Marks = std::vector<uint64_t>;

  // Windows whose first or last operations are alike, and that began behind a seam of the same
  // kind, or none.
  struct Family {
    int left_alone = 0;  // windows to come that are not compared
    int futile = 0;
    Marks signatures;  // of the last window that was
  };
  using Families = std::unordered_map<uint64_t, Family>;

  struct Seam {
    FlushReason kind;  // kBranch or kMerge
    // Of the operations up to it. Of a branch by operator and line alone, so that it is one seam in
    // all rounds of a loop.
    std::array<uint64_t, kOperations> marks;
    const OperatorInfo* op;  // the last of them, and its line
    LocationId location;
    // Of the shortest window that was found to end there. In shorter ones the lines of a branch are
    // likely to be those of a loop in front of it.
    size_t least_operations;
    bool armed = true;  // of a merge
    int flushes_in_vain = 0;
    uint64_t reached = 0;  // flushes at seams until it was one the last time
    bool given_up() const {
      return flushes_in_vain >=
             (kind == FlushReason::kBranch ? kMostBranchesInVain : kMostMergesInVain);
    }
  };

  static constexpr size_t kNone = SIZE_MAX;

  void end_window(bool repeated);
  // `signatures`: the tape's, left empty until they are needed.
  void compare(FlushReason kind, Family& family, const Tape& tape, Marks& signatures);
  std::optional<size_t> find_seam(const Tape& tape) const;
  static uint64_t mark_at(FlushReason kind, const Tape& tape, size_t operation);
  // Behind the first `end` operations of the tape. False: there is nothing new in it.
  bool add(FlushReason kind, const Tape& tape, size_t end);

  Families by_beginning_, by_end_;
  std::vector<Seam> seams_;
  uint64_t flushes_ = 0;  // at seams
  // The seam behind which the open window began, and at which it is about to be flushed. Not known
  // where that is one that a deferring window ends at.
  size_t begun_at_ = kNone, reached_ = kNone;
  std::optional<FlushReason> behind_;  // the kind of seam that the window before ended at
};

}  // namespace torch_lazy
