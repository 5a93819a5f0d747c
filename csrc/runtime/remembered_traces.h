// Traces that ran often, remembered on disk.
//
// A process learns its windows afresh: each is recorded twice before it is compiled, and on a
// machine without an idle core until the script has spent as long in it as the compile takes. What
// an earlier process ran often is compiled when it is first recorded. Its kernels are on disk
// beside it, so that takes a few milliseconds.
//
// Remembered is what a recording is compared with, not the trace: a hash and the numbers that are
// dynamic. So nothing that is wrong there changes what a window computes but for rounding; at worst
// something is compiled that does not run. Of processes that end at the same moment one may undo
// what another has added.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tape/dynamic_scalars.h"
#include "tape/tape.h"

namespace torch_lazy {

struct RememberedTrace {
  int64_t runs = 0;                      // as compiled, in one process
  std::chrono::nanoseconds recorded{0};  // how long a recording took, of the process with the least
  DynamicScalars dynamic_scalars;
  bool operator==(const RememberedTrace&) const = default;
};

// By structure, which is the hash of a tape without the numbers that may be dynamic.
using RememberedTraces = std::unordered_map<Tape::Hash, RememberedTrace, TapeHasher>;
// The same in the order in which they were used, the latest first.
using RememberedTracesInOrder = std::vector<RememberedTraces::value_type>;

// Reads what earlier processes have run by the backend that compiles from now on, unless that was
// read last. Must be called without the recording lock: what is broken is warned about.
void recall_traces();
// None where it recalled no such trace.
std::optional<RememberedTrace> remembered_trace(const Tape::Hash& structure);

// So many runs of a trace are worth remembering.
constexpr int64_t kLeastRunsToRemember = 8;

// Whether a process, or the time of a backend in it, has come to its end: then only it is known
// that a trace was run less often than before.
enum class Until : uint8_t { kNow, kTheEnd };

// Remembers the traces that have run often in this process; without raising. At its end, before
// another backend compiles, and now and then: not every process comes to an end of its own.
void remember_traces(Until until) noexcept;
// A trace has run that often, or twice as often as when this was last called of it: has that done
// by the compile thread, where it was not done lately.
void ask_to_remember_traces();

// What is remembered once a process has run the traces `now`, which are those that ran often and
// those that were compiled since they are remembered. `recalled`: what it began with, `kept`: what
// is there now, by which others have added to it. Where it ran a trace less often than was
// recalled, half of those runs stand; one that no process runs any more is forgotten soon. Bounded:
// of what it did not meet that which was used longest ago is dropped.
RememberedTracesInOrder remembered_after(const RememberedTraces& now,
                                         const RememberedTraces& recalled,
                                         const RememberedTracesInOrder& kept, Until until);

// As they are kept, and back; none for what is not that.
std::string to_bytes(const RememberedTracesInOrder& traces);
RememberedTracesInOrder remembered_from_bytes(std::string_view bytes);

}  // namespace torch_lazy
