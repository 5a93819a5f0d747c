// Whether what seams part would repeat as a whole.
//
// Seams are found in the first windows that differ, and it takes more of them to tell a script that
// has some paths from one that has countless. A *stretch* is what would be one window without
// seams. Where the last few stretches that begin alike had all been met before, they are not parted
// any more and become windows of their own, until those are new again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>

#include "tape/tape.h"

namespace torch_lazy {

// Of the windows of one learner; guarded as that is. A window costs a few instructions.
class Stretches {
 public:
  // A window ended that was never recorded before, or one that was, which `id` stands for.
  void note_new(const Tape& tape);
  void note_repeated(const Tape& tape, uint64_t id);
  // That window was flushed, at a seam or for another reason.
  void note_flush(bool at_seam);
  // Whether the open window, which the tape is of, is to be flushed where it has come to a seam.
  bool are_parted(const Tape& tape) const;
  void clear() { *this = {}; }

  // So many stretches that begin alike are remembered, and have to have been known in a row. Of
  // whole ones so many have to be new in a row until they are parted again, and then it takes twice
  // as many as before to make them whole.
  static constexpr size_t kRemembered = 16;
  static constexpr int kKnownInARow = 16, kNewInARow = 8;

 private:
  static constexpr size_t kMostBeginnings = 64;  // then all are forgotten

  // Stretches whose first operations have the same operator and line.
  struct Beginning {
    std::deque<uint64_t> last;  // the latest first
    int in_a_row = 0;           // that were known, or where they are whole, new
    int patience = kKnownInARow;
    bool whole = false;
  };

  void note(const Tape& tape);
  void end_parted(Beginning& beginning) const;
  void end_whole(Beginning& beginning) const;

  std::unordered_map<uint64_t, Beginning> beginnings_;
  size_t whole_ = 0;  // beginnings that are
  // The stretch of the open window.
  uint64_t beginning_ = 0, hash_ = 0;
  size_t windows_ = 0;
  bool is_new_ = false;
};

}  // namespace torch_lazy
