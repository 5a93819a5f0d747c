// How windows have begun, to tell while a window is recorded whether it may repeat an earlier one.
#pragma once

#include <c10/util/flat_hash_map.h>

#include <cstddef>
#include <cstdint>

#include "trace/tape.h"

namespace torch_lazy {

// A window is familiar while an earlier one began with the same operations, numbers that may be
// promoted aside. Compared after 1, 2, 4, 8 and 16 operations: what is no longer familiar is cold,
// and what repeats an earlier window is familiar to its end. Not thread safe: one per recorder.
class Beginnings {
 public:
  // A window begins.
  void start() {
    hash_ = 0;
    taken_ = 0;
    familiar_ = true;
  }
  // The tape has got an operation, whose entry may still be open; operations may be passed over, as
  // deferred ones are. Returns whether the window is familiar.
  bool follow(const Tape& tape);
  bool familiar() const { return familiar_; }
  // The window begins at a place in the program, see innermost_place(). Returns whether one has
  // begun there before.
  bool at_known_place(uint64_t place);

 private:
  void take(const Tape& tape, size_t index);

  ska::flat_hash_set<uint64_t> seen_;  // hashes of the beginnings
  ska::flat_hash_set<uint64_t> places_;
  uint64_t hash_ = 0;                  // of the operations taken
  size_t taken_ = 0;
  bool familiar_ = true;
};

}  // namespace torch_lazy
