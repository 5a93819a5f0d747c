// Which structures of windows have been recorded, and with which numbers.
#pragma once

#include <c10/util/flat_hash_map.h>

#include <cstdint>
#include <vector>

#include "tape/dynamic_scalars.h"
#include "tape/tape.h"

namespace torch_lazy {

// Most windows of a script that does not repeat are met once, so a first recording takes three
// words and an entry in one table. Not thread safe: one per recorder.
class TraceProfile {
 public:
  struct Again {
    const ScalarHistory* history;  // this recording included; valid until the next add() or clear()
    size_t dynamic;                // how many numbers of it are dynamic since this recording
  };
  // A recording of the structure with these of its numbers. The history is null the first time.
  Again add(const Tape::Hash& structure, c10::ArrayRef<uint64_t> numbers);
  // That recording, the first, was not the first of all: an earlier process has learnt that these
  // of the numbers that stand at `words` are dynamic. Null, and nothing is learnt, where that is
  // not of this structure.
  const ScalarHistory* add_remembered(const Tape::Hash& structure, c10::ArrayRef<uint32_t> words,
                                      const DynamicScalars& dynamic);
  void clear();

 private:
  struct Once {
    uint32_t begin, end;  // in `numbers_`
  };
  ska::flat_hash_map<Tape::Hash, Once, TapeHasher> once_;
  std::vector<uint64_t> numbers_;
  ska::flat_hash_map<Tape::Hash, ScalarHistory, TapeHasher> again_;
};

}  // namespace torch_lazy
