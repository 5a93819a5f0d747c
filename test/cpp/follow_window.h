#pragma once

#include "tape/tape.h"
#include "trace/matcher.h"

namespace torch_lazy::tests {

// Records the first operations of a window again, up to one that the matcher says no to, which is
// open on the tape then, or to where it says that the window is to be flushed.
inline Tape follow(Matcher& matcher, const Tape& window, size_t operations,
                   bool flushed_where_told = true) {
  Tape tape;
  for (size_t i = 0; i < operations; ++i) {
    tape.begin(window.entry(i).op, window.entry(i).location);
    for (const uint64_t word : window.words(i).slice(1)) tape.word(word);
    if (!matcher.match(tape)) break;
    tape.copy_outputs(window.outputs(i));
    tape.end();
    if (flushed_where_told && matcher.must_flush(tape)) break;
  }
  return tape;
}

}  // namespace torch_lazy::tests
