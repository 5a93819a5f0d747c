// Which of two ways to do the same work is faster: who runs next, and who has won.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace torch_lazy {

// The first is used unless the rival is surely faster. Each takes turns of four runs, so that most
// runs begin with what the same way left in the caches. Other load on the machine makes single runs
// longer and none shorter: the least of a way's times and the least quarter of them have to agree.
// It may come at intervals, as the scheduler's time slices do, and meet the same runs of several
// rounds: what it takes shows as times of the first way that differ, and then all rounds are run.
class Race {
 public:
  enum class Run : uint8_t { kWarmUp, kStepByStep, kCounted };
  enum Way : uint8_t { kFirst, kRival };

  Race() = default;
  // The first way was seen to take no longer than that.
  explicit Race(std::chrono::nanoseconds known) : known_(known) {}

  // Who runs next, and what for.
  Way next() const { return runs_ / kTurn % 2 == 0 ? kFirst : kRival; }
  Run purpose() const {
    const uint32_t at = runs_ % kTurn;
    return at == 0 ? Run::kWarmUp : at == 1 ? Run::kStepByStep : Run::kCounted;
  }
  // That run took so long.
  void add(std::chrono::nanoseconds time);
  // Where a round has just ended that tells. The last round does, and no run may follow it.
  std::optional<Way> winner() const { return winner_; }
  uint32_t rounds() const { return runs_ / (2 * kTurn); }
  // The least of the counted times, and of what was known of the first way before.
  std::chrono::nanoseconds least(Way way) const;

 private:
  static constexpr uint32_t kTurn = 4, kCounted = 2, kRounds = 5;

  size_t counted() const { return size_t{rounds()} * kCounted; }
  // Whether the rival's first runs, the first of which has to warm up, tell enough: a rival may be
  // many times slower, and a program need not wait for more of that.
  bool is_far_slower_at_first() const;
  void end_first_round();
  // What a quarter of the times is less than.
  std::chrono::nanoseconds quartile(Way way) const;
  // The first way's times are about equal.
  bool first_is_steady() const;
  // The times of `way` are less than those of the other one by this factor.
  bool wins_by(Way way, double factor) const;

  std::chrono::nanoseconds known_ = std::chrono::nanoseconds::max();
  uint32_t runs_ = 0;
  std::chrono::nanoseconds at_first_ = std::chrono::nanoseconds::max();  // least of those runs
  std::array<std::array<std::chrono::nanoseconds, size_t{kCounted} * kRounds>, 2> times_{};
  std::optional<Way> winner_;
};

}  // namespace torch_lazy
