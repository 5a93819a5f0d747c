// When operations bypass the tape, that is, run at the call and are not recorded: where recording
// them does not pay.
//
// It costs some hundred nanoseconds to record an operation. Two kinds of programs never get them
// back:
//   one that never repeats  Once many operations in a row were recorded in vain, one window in a
//       while is recorded, until one repeats.
//   one of small windows  A value is read after every few operations on a few elements, and what
//       their window saves is less than what it takes to record and to run it. Where sync points
//       are close to each other, both ways are raced, timed from sync point to sync point with all
//       that Python does. The winner stays for thousands of sync points, and for twice as many each
//       time that it wins again. Where it is the bypass, windows are recorded again as soon as
//       an operator comes that was not in the race, or between two sync points twice as many
//       operations or elements.
#pragma once

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
  // Such an operation, by the id of its operator, and the elements of its arguments. False: it
  // is to be recorded after all.
  bool add(uint64_t op, size_t elements);
  // A recorded window has ended, of so many operations.
  void note_window(WindowState state, size_t operations);
  // The program has come to a sync point. No window is open.
  void note_sync();
  // Nothing is known of the program any more, and its operations are recorded.
  void reset() { *this = Bypass(now_); }

  // Operations that are recorded in vain before windows are left out, and how many are for each one
  // that is recorded then. An operation that was recorded before makes up for so many: small
  // windows are alike by chance.
  static constexpr size_t kPatience = 4096, kLeftOut = 7, kWorth = 64;
  // A race begins after so many sync points, which came within that time of each other and did not
  // end a window that is being learnt.
  static constexpr size_t kBeforeRace = 32;
  static constexpr std::chrono::nanoseconds kMostBetween = std::chrono::milliseconds(1);
  // One run of a race.
  static constexpr size_t kLeastSyncs = 8;
  static constexpr std::chrono::nanoseconds kLeastTime = std::chrono::microseconds(50);
  // Sync points for which the winner stays the first time, and at most.
  static constexpr size_t kStays = 4096, kStaysAtMost = size_t(1) << 16;

 private:
  enum class State : uint8_t {
    kRecording,
    kLeavingOut,  // one that never repeats
    kRacing,      // one of small windows
    kBypassing,   // one of small windows, where the bypass is faster
  };

  void record();
  void begin_race(std::chrono::nanoseconds between);
  void end_run();
  void end_race(Race::Way winner);

  Now now_;
  State state_ = State::kRecording;
  bool is_on_ = false;
  size_t in_vain_ = 0;  // operations that were recorded, less those that others make up for
  // Of a program that never repeats, since it was left to itself: operations until it comes to a
  // sync point where it is recorded again, and operations so far.
  size_t to_leave_out_ = 0, left_out_ = 0;
  size_t syncs_ = 0;                  // before a race, of a run or since the winner was found
  std::chrono::nanoseconds since_{};  // when these began, but the last
  size_t until_race_ = 0;             // sync points for which the winner stays
  std::optional<Race> race_;
  std::optional<Race::Way> last_winner_;
  size_t stays_ = kStays;  // the next winner
  // Of operators that were in the race, by the lower bits of their ids.
  uint64_t operators_ = 0;
  // Since the last sync point, and between any two of them in the race.
  size_t operations_ = 0, most_operations_ = 0;
  size_t elements_ = 0, most_elements_ = 0;
};

}  // namespace torch_lazy
