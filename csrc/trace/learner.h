// What a recorder keeps of the windows it has seen: profiles of those that were recorded, traces on
// their way to be compiled, and the known traces that recordings are matched against.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

#include "base/config.h"
#include "runtime/trace_cache.h"
#include "trace/flush_reason.h"
#include "trace/known_traces.h"
#include "trace/seams.h"
#include "trace/stretches.h"
#include "trace/trace_profile.h"
#include "trace/window.h"

namespace torch_lazy {

// Guarded by the recording lock.
//
// A recorder has two, one of them for windows under deterministic algorithms. What that one knows
// is a function of the windows that its thread has recorded: it shares no traces with others,
// begins with each thread anew, and no window begins before what it queued is compiled
// (Recorder::prepare_another_window).
class Learner {
 public:
  enum class Mode : uint8_t { kShared, kDeterministic };
  explicit Learner(Mode mode) : owner_(mode == Mode::kDeterministic ? this : nullptr) {}
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;

  // A window begins. Returns the traces that it may follow, null if there are none.
  KnownTraces* start_window(const TraceKey& key);
  // Records the window's profile. Where it was recorded before, or ran often in an earlier process,
  // its trace is queued for compiling once that pays, and matchable in windows that begin once that
  // is done. `automatic`: see Segment::End.
  WindowState record_profile(Window& window, std::optional<FlushReason> automatic);
  // A window was recorded again, or ran, as that trace.
  void note_repeated(const Tape& tape, const CompiledTrace& trace);
  // It was flushed; also where there was none any more.
  void note_flush(FlushReason reason);
  // An operation was added to an eager window: the seam that it has come to, if it shall be flushed
  // there.
  std::optional<FlushReason> at_seam(Window& window) {
    if (!window.slots_valid()) return std::nullopt;
    const auto seam = seams_.find(window.tape());  // most learners have none
    if (!seam || config().defer == Defer::kNever || !stretches_.are_parted(window.tape()))
      return std::nullopt;
    return seams_.reach(*seam);
  }
  // A deferring window has come to an end, where the matcher wants it flushed for that reason.
  bool ends_there(const Window& window, FlushReason reason) const {
    return !is_seam(reason) || stretches_.are_parted(window.tape());
  }
  // Another thread records from now on. Of traces that no other recorder finds nothing is left.
  void begin_thread();

 private:
  // A compiled trace to be made matchable once it is ready.
  struct Awaited {
    TraceKey key;
    std::shared_ptr<CompiledTrace> trace;
    std::optional<FlushReason> automatic;
  };

  void forget();
  void forget_dropped_traces();
  void admit_ready_traces();
  // The first recording of the window, where an earlier process has learnt what is dynamic of the
  // numbers at `words`; null where it has not.
  const ScalarHistory* add_remembered(const Tape& tape, const Tape::Hash& structure,
                                      c10::ArrayRef<uint32_t> words);
  void await(const TraceKey& key, std::shared_ptr<CompiledTrace> trace,
             std::optional<FlushReason> automatic);

  const TraceOwner owner_;
  std::map<TraceKey, KnownTraces> known_;
  std::vector<Awaited> awaited_;
  std::unordered_set<const CompiledTrace*> awaited_traces_;  // of `awaited_`
  uint64_t finished_seen_ = 0;  // finished_compiles() when `awaited_` was last looked through
  TraceGeneration generation_;  // of the traces here
  Seams seams_;
  Stretches stretches_;
  // By hash, windows between two flushes for other reasons than seams that are given other sizes
  // each time. Each layer of a network may be such a one, and none comes again.
  std::unordered_set<uint64_t> changing_;
  TraceProfile profile_;  // by hash of the tape without the numbers that may be dynamic
};

}  // namespace torch_lazy
