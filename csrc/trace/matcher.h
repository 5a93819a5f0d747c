// Follows the known traces: which of them a deferring window is, and whether it still is one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trace/guard_failure.h"
#include "trace/known_traces.h"
#include "trace/window_history.h"

namespace torch_lazy {

class Matcher {
 public:
  // A window begins that may follow these traces; null where it is not to follow any.
  void start(KnownTraces* traces) {
    traces_ = traces;
    cursor_ = traces ? traces->start() : Cursor();
    first_ = nullptr;
    passed_by_ = false;
    end_ = passed_ = nullptr;
    expected_.reset();
    trusted_ = false;
    compared_ = 0;
  }

  // Steps over the operation that is open on the tape. False: no known trace goes on with it, or
  // windows that begin with it seldom came to an end of one lately.
  bool match(const Tape& tape) {
    if (end_ && tape.size() > kLeastOfAWindow) pass_end();
    if (!cursor_.advance(tape) && !cursor_.find_again(tape, false)) return false;
    end_ = cursor_.end();
    if (first_) return true;
    first_ = cursor_.segment();
    passed_by_ = !first_->prospect().is_good();
    return !passed_by_;
  }
  // After match() has said no, though not at once.
  void note_guard_failure() {
    // Where an end was passed whose prospect is not good, it is the beginning that leads astray.
    const bool is_of_end = passed_ && passed_->beyond.is_good();
    (is_of_end ? passed_->beyond : first_->prospect()).note_failure();
  }
  // The window ran as that trace, which has ended.
  void note_run(CompiledTrace& trace) {
    first_->prospect().note_success();
    if (passed_) passed_->beyond.note_success();
    if (end_ && !end_->beyond.is_good()) end_->beyond.note_refusal();
    first_->note_end(trace);
  }
  // A window ends that began so and was not followed from its first operation on.
  void note_eager_end(const Tape& tape) {
    if (!passed_by_) return;
    if (cursor_.find(tape, true))
      first_->prospect().note_success();
    else
      first_->prospect().note_failure();
  }
  // It was not what was expected.
  void note_wrong_guess() { first_->note_wrong_guess(); }
  // Of the operation stepped over last.
  c10::ArrayRef<KnownOutput> outputs() const { return cursor_.outputs(); }
  c10::ArrayRef<uint64_t> output_words() const { return cursor_.output_words(); }
  WarningsId warnings() const { return cursor_.warnings(); }
  // After match() has said no.
  std::string why_not(const Tape& tape) const { return describe_guard_failure(cursor_, tape); }

  // Why the window is to be flushed here by the recorder itself, where it is: because every known
  // trace that came here was, or because those that went on from an end seldom came to another.
  std::optional<FlushReason> must_flush(const Tape& tape) const {
    if (!end_) return std::nullopt;
    if (end_->automatic && cursor_.at_leaf()) return end_->automatic;
    const bool goes_on = tape.size() < kLeastOfAWindow || end_->beyond.is_good();
    return goes_on ? std::nullopt : std::optional(FlushReason::kBranch);
  }
  // The trace that ends after the operations on the tape; null if none does.
  CompiledTrace* ended(const Tape& tape) {
    if (!cursor_.end()) cursor_.find_again(tape, true);
    const Segment::End* end = cursor_.end();
    return end ? end->trace.get() : nullptr;
  }

  // Of the window that began last.
  const KnownTraces* traces() const { return traces_; }

  // The trace that the window is likely to be, by what came before it and, where that is new, by
  // how it begins; it has followed it so far. Null where there is none. No operation is open.
  std::shared_ptr<CompiledTrace> expected(const Tape& tape, const WindowHistory& history) {
    std::shared_ptr<CompiledTrace> expected =
        compared_ == 0 ? first_guess(history) : expected_.lock();
    if (expected && !follows(*expected, tape, compared_)) expected.reset();
    compared_ = tape.size();
    expected_ = expected;
    return expected;
  }
  // The guess comes from the history, and was never wrong. After expected().
  bool trusts_guess() const { return trusted_; }

 private:
  void pass_end() {
    if (passed_) passed_->beyond.note_success();  // the window has come to another end
    passed_ = end_;
  }
  std::shared_ptr<CompiledTrace> first_guess(const WindowHistory& history) {
    const WindowHistory::Guess* const guess = history.next(traces_);
    trusted_ = guess && !guess->was_wrong;
    if (!guess) return first_->expected();
    auto trace = guess->ended_otherwise ? nullptr : guess->trace.lock();
    return trace && trace->is_dropped() ? nullptr : trace;
  }

  KnownTraces* traces_ = nullptr;
  Cursor cursor_;
  Segment* first_ = nullptr;        // with which the window began
  bool passed_by_ = false;          // and it was not followed
  Segment::End* end_ = nullptr;     // where the window is
  Segment::End* passed_ = nullptr;  // where it went on from last
  std::weak_ptr<CompiledTrace> expected_;
  bool trusted_ = false;
  size_t compared_ = 0;  // operations that follow it
};

}  // namespace torch_lazy
