// When operations bypass the tape, that is, run at the call and are not recorded: where recording
// them does not pay.
//
// It costs some hundred nanoseconds to record an operation. Two kinds of programs never get them
// back:
//   one that never repeats  Once many operations between many sync points were recorded in vain,
//       one *stretch* in a while is recorded, what is between two sync points, drawn at random,
//       until windows repeat. The end of a backward pass is a sync point here: it ends a window
//       whatever comes, and many training loops read no value for long.
//   one of small windows  A value is read after every few operations on a few elements, or the
//       program goes another way each time, and what their window saves is less than what it takes
//       to record and to run it. Where sync points are close to each other, or windows are small
//       and nothing in them takes long, both ways are raced, timed from sync point to sync point
//       with all that Python does. The winner stays for thousands of sync points, and for twice as
//       many each time that it wins again. What is none where the tape is bypassed, since nothing
//       is pending then, is none of these.
//
// A race tells of the stretches that were in it. Those that are larger, or of other operators, end
// it, and what it has led to: it is waited for twice as long then until the next one, since they
// may come again and again. Nothing begins to be recorded in the midst of a stretch unless it has
// become very long, because windows that begin there are not known and not to be learnt.
#pragma once

#include <algorithm>
#include <bitset>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/race.h"
#include "trace/flush_reason.h"

namespace torch_lazy {

// Of one recorder; touched by the thread alone that records.
class Bypass {
 public:
  using Now = std::chrono::nanoseconds (*)();
  explicit Bypass(Now now) : now_(now) {}

  // Whether the next operation bypasses the tape if no window is open; it has to be add()ed then.
  bool is_on() const { return is_on_; }
  // Such an operation, by the id of its operator, and the elements of its arguments. False: it is
  // to be recorded after all.
  bool add(uint64_t op, size_t elements);
  // A recorded window has ended, of so many operations.
  void note_window(WindowState state, size_t operations);
  // The program has come to a sync point, or to the end of backward. No window is open.
  void note_sync();
  // Nothing is known of the program any more, and its operations are recorded.
  void reset() { *this = Bypass(now_); }

  // What was recorded in vain, at least, where only one stretch in kOneIn is recorded from then on.
  // An operation that was recorded before makes up for kWorth that were not: small windows are
  // alike by chance.
  static constexpr size_t kOperationsInVain = 4096, kSyncsInVain = 32, kOneIn = 8, kWorth = 64;
  // A stretch of more operations that bypass the tape may have no end.
  static constexpr size_t kLongest = 4096;
  // A race begins after so many sync points, which did not end a window that is being learnt. A
  // program that still learns after so many windows may have more of them than it will ever learn.
  static constexpr size_t kBeforeRace = 32, kMostLearnt = 4096;
  // Either they came within that time of each other.
  static constexpr std::chrono::nanoseconds kMostBetween = std::chrono::milliseconds(1);
  // Or windows had this many operations at most, on average: those of a few are not many times
  // faster in kernels. And an operation took so long at most, with all that is around it: to record
  // it is a part of that which can be measured.
  static constexpr size_t kFewInWindow = 16;
  static constexpr std::chrono::nanoseconds kShortOperation = std::chrono::microseconds(20);
  // One run of a race. It ends behind one of the larger stretches and has some of them, so that all
  // runs have as much of each in a loop where large ones stand among small ones. The time is that
  // of a loop's body over a few sync points.
  static constexpr size_t kLeastSyncs = 8, kMostInRun = 1024, kLargeInRun = 2;
  static constexpr std::chrono::nanoseconds kLeastTime = std::chrono::microseconds(400);
  // Stretches of so few operations and elements are alike: none is much slower either way.
  static constexpr size_t kFewOperations = 16, kFewElements = 4096;
  // Stretches with operators that the race did not have are something else where so many come in a
  // row.
  static constexpr size_t kNewInARow = 4;
  // Sync points for which the winner stays the first time, those before a race after one that was
  // of something else, and most of either.
  static constexpr size_t kStays = 4096, kSoon = 256, kMostSyncs = size_t(1) << 16;

 private:
  enum class State : uint8_t {
    kRecording,
    kLeavingOut,  // a program that never repeats
    kRacing,      // one of small windows
    kBypassing,   // one of small windows, where the bypass is faster
  };
  struct Stretch {
    size_t operations = 0, elements = 0;
    bool exceeds(const Stretch& most) const {
      return operations > 2 * std::max(most.operations, kFewOperations) ||
             elements > 2 * std::max(most.elements, kFewElements);
    }
  };

  void record();
  void leave_out();
  void begin_race();
  // Whether what was recorded before a race, in so long, is worth one.
  bool may_gain(std::chrono::nanoseconds taken) const;
  void end_run();
  void end_race(Race::Way winner);
  // What comes is not what the race was of.
  void end_by_others();

  Now now_;
  State state_ = State::kRecording;
  bool is_on_ = false;
  Stretch stretch_;      // since the last sync point; of recorded operations without their elements
  bool is_new_ = false;  // an operator came in it that the race did not have

  // --- Of a program that may never repeat
  size_t in_vain_ = 0;        // operations that were recorded, less those that others make up for
  size_t syncs_in_vain_ = 0;  // behind them
  size_t most_in_vain_ = 0;   // operations of a stretch
  uint64_t random_ = 1;       // state of the draws, of a generator of Marsaglia's ("Xorshift RNGs")

  // --- Of one that may be of small windows
  size_t syncs_ = 0;                  // before a race, or of a run
  std::chrono::nanoseconds since_{};  // when these began, but the last
  size_t most_recorded_ = 0;          // operations of a stretch before the race
  // Of windows before the race: how many, their operations, and those of new windows.
  size_t windows_ = 0, operations_ = 0, new_operations_ = 0;
  size_t large_ = 0;       // stretches of the run with half as many or more
  size_t until_race_ = 0;  // sync points for which the winner stays, or is waited
  size_t stays_ = kStays, wait_ = kSoon;
  size_t learnt_ = 0;  // windows that put off a race, since recording last won one
  std::optional<Race> race_;
  std::optional<Race::Way> last_winner_;
  // Of stretches in the bypass' runs: the largest of this run, and of the run where that is least.
  Stretch of_run_, most_;
  std::bitset<256> operators_;  // of all of them, by the lower bits of their ids
  size_t new_in_a_row_ = 0;
};

}  // namespace torch_lazy
