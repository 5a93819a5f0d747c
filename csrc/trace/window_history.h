// Which window is likely to come next, by those before it.
//
// The windows of a step of a program follow each other in the same order in every step, though
// many of them begin alike: the layers of a network whose windows end at each layer. So what
// followed the same last windows before is what is expected.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "runtime/compiled_trace.h"
#include "trace/known_traces.h"

namespace torch_lazy {

// A recorder's, and used as its window is.
class WindowHistory {
 public:
  struct Guess {
    std::weak_ptr<CompiledTrace> trace;
    bool ended_otherwise = false;  // than the time before
    bool was_wrong = false;        // some time: the device had begun with another one
  };

  // What came after the windows before this one, of those that may follow `traces`, which are of
  // one device and state; null where the windows before are new.
  const Guess* next(const KnownTraces* traces) const;
  // The window, which might have followed `traces`, ended: as that trace, or as none. `dropped`:
  // the device had begun with what was then dropped.
  void note_end(const KnownTraces* traces, const std::shared_ptr<CompiledTrace>& trace,
                bool dropped);

 private:
  static constexpr size_t kWindows = 8;
  static constexpr size_t kMostGuesses = 1024;  // then all are forgotten

  uint64_t key(const KnownTraces* traces) const;

  std::array<const CompiledTrace*, kWindows> last_{};  // a ring; not to be looked into
  size_t next_ = 0;
  std::unordered_map<uint64_t, Guess> guesses_;  // by the last windows
};

}  // namespace torch_lazy
