// Known traces: what recordings are matched against.
//
// A tree of segments. A segment is a run of operations of one compiled trace; at any index it may
// have side exits to other segments (a branch that was recorded later) and ends (a window was
// flushed there). Owned by one recorder and only touched by the thread that holds the recording
// lock.
//
// A segment's operations may have dynamic scalars (tape/dynamic_scalars.h): then a recording can
// match more than one path, and the one it follows may turn out to be the wrong one. It is looked
// for again from the root.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "runtime/compiled_trace.h"
#include "tape/tape.h"
#include "trace/flush_reason.h"

namespace torch_lazy {

// What windows that went on from a place came to: an end, or an operation that failed a guard.
// Where the latter happens far more often, going on costs more than it brings.
class Prospect {
 public:
  void note_success() { failures_ -= std::min(failures_, kFailuresOfASuccess); }
  void note_failure() { failures_ = std::min(failures_ + 1, 2 * kMostFailures); }
  bool is_good() const { return failures_ < kMostFailures; }
  // A window did not go on, since the prospect is not good: now and then the next one shall.
  void note_refusal() {
    if (++refusals_ % kRefusalsForATry == 0) failures_ = std::min(failures_, kMostFailures - 1);
  }

 private:
  // A run wins about what so many failures cost.
  static constexpr uint32_t kMostFailures = 8, kFailuresOfASuccess = 4;
  static constexpr uint32_t kRefusalsForATry = 64;
  uint32_t failures_ = 0;  // less those that successes make up for
  uint32_t refusals_ = 0;
};

class Segment {
 public:
  // An end: a window was flushed after the operations before it.
  struct End {
    std::shared_ptr<CompiledTrace> trace;
    // Why it is flushed as soon as it is reached (a limit, a period or a seam); none where only
    // something that asks for it does.
    std::optional<FlushReason> automatic;
    Prospect beyond;  // of windows that do not end here
  };

  // Operations [from, size) of the trace's tape. The root of a tree is an empty segment.
  Segment() : places_(1) {}
  Segment(std::shared_ptr<CompiledTrace> trace, size_t from);

  size_t size() const { return places_.size() - 1; }
  c10::ArrayRef<uint64_t> words(size_t index) const { return trace_->tape().words(from_ + index); }
  c10::ArrayRef<uint64_t> output_words(size_t index) const {
    return trace_->tape().outputs(from_ + index);
  }
  WarningsId warnings(size_t index) const { return trace_->tape().entry(from_ + index).warnings; }
  c10::ArrayRef<DynamicScalar> dynamic(size_t index) const {
    return trace_->dynamic(from_ + index);
  }
  c10::ArrayRef<KnownOutput> outputs(size_t index) const { return trace_->outputs(from_ + index); }
  End* end(size_t index) {
    Place* const place = places_[index].get();
    return place && place->end.trace ? &place->end : nullptr;
  }
  // Of a segment that windows begin with: of going on from its first operation. Where an input is
  // larger each time it is not good.
  Prospect& prospect() { return prospect_; }
  // Also of such a segment: what a window is likely to be, which is what the last one was. Null
  // where that differed from the one before it, or there was none.
  std::shared_ptr<CompiledTrace> expected() const { return ended_otherwise_ ? nullptr : last_end_; }
  // A window ended as that trace, and ran so.
  void note_end(CompiledTrace& trace) {
    ended_otherwise_ = last_end_ && last_end_.get() != &trace;
    if (last_end_.get() != &trace) last_end_ = trace.shared_from_this();
  }
  // It was not what was expected.
  void note_wrong_guess() { ended_otherwise_ = true; }
  // Whether the operation at `index` is the tape's, whose words begin and end there.
  bool matches(size_t index, const Tape& tape, size_t begin, size_t end) const;

 private:
  friend class KnownTraces;
  friend class Cursor;
  std::shared_ptr<CompiledTrace> trace_;
  size_t from_ = 0;
  // Where recordings leave the segment. Few, but at the start of a tree or of a loop whose numbers
  // change there can be thousands: by hash of the first operation's words.
  struct SideExits {
    // Dynamic words are hashed as 0.
    std::unordered_multimap<uint64_t, std::unique_ptr<Segment>> by_words;
    // Which words of a first operation are dynamic; of all side exits, each once.
    std::vector<std::vector<uint32_t>> dynamic;

    void add(std::unique_ptr<Segment> segment);
    // Calls visit(segment) for side exits that the tape's operation follows until it returns true.
    template <typename Visit>
    void each(const Tape& tape, size_t begin, size_t end, const Visit& visit) const;
  };
  // Between two operations. Most are only passed.
  struct Place {
    SideExits side_exits;
    End end;
  };

  Place& place(size_t index) {
    if (!places_[index]) places_[index] = std::make_unique<Place>();
    return *places_[index];
  }
  // Null where there are none.
  const SideExits* side_exits(size_t index) const {
    const Place* const place = places_[index].get();
    return place && !place->side_exits.by_words.empty() ? &place->side_exits : nullptr;
  }

  std::vector<std::unique_ptr<Place>> places_;  // by index, size() + 1 of them
  // Of a segment that windows begin with.
  std::shared_ptr<CompiledTrace> last_end_;  // of those that ran as compiled
  bool ended_otherwise_ = false;             // than the one before it
  Prospect prospect_;
};

// A place in the tree: `index` operations of `segment` have matched.
class Cursor {
 public:
  Cursor() = default;

  // Steps over the operation that is open on the tape; false and unmoved when none is known here.
  bool advance(const Tape& tape);
  // Moves to a path that all operations of the tape follow, the open one included, and that has the
  // outputs on the tape; with `to_end` to one that has an end there. False and unmoved where there
  // is none.
  bool find(const Tape& tape, bool to_end);
  // The same where the cursor's own path does not serve: there can be another.
  bool find_again(const Tape& tape, bool to_end);
  // The operation stepped over last.
  c10::ArrayRef<KnownOutput> outputs() const { return segment_->outputs(index_ - 1); }
  c10::ArrayRef<uint64_t> output_words() const { return segment_->output_words(index_ - 1); }
  WarningsId warnings() const { return segment_->warnings(index_ - 1); }
  Segment::End* end() const { return segment_->end(index_); }
  Segment* segment() const { return segment_; }
  // The operations that known traces go on with here.
  struct Next {
    const CompiledTrace* trace;
    size_t operation;
  };
  std::vector<Next> next() const;
  bool at_leaf() const { return index_ == segment_->size() && !segment_->side_exits(index_); }

 private:
  friend class KnownTraces;
  explicit Cursor(class KnownTraces* traces);
  // Steps over the operation if the tree has the very same one here, with the same dynamic words.
  bool advance_equal(const CompiledTrace& trace, size_t operation);

  KnownTraces* traces_ = nullptr;
  Segment* segment_ = nullptr;
  size_t index_ = 0;
};

// Whether operations [from, tape.size()) of the tape are the trace's. None is open.
bool follows(const CompiledTrace& trace, const Tape& tape, size_t from);

class KnownTraces {
 public:
  // Makes the trace matchable from the root on.
  void insert(const std::shared_ptr<CompiledTrace>& trace, std::optional<FlushReason> automatic);
  // What is known of the places where windows begin and go on is forgotten with them.
  void forget_dropped_traces();
  bool empty() const { return !root_.side_exits(0); }
  Cursor start() { return Cursor(this); }

 private:
  friend class Cursor;
  Segment root_;
  bool has_dynamic_scalars_ = false;  // some trace has dynamic scalars: several paths may match
};

}  // namespace torch_lazy
