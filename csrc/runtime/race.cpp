#include "runtime/race.h"

#include <algorithm>

namespace torch_lazy {
namespace {

struct Round {
  double first, rival;  // by which factor either has to be faster after it
};

// The fewer times there are, the clearer they have to be. What the first way costs to keep, if it
// was the wrong one, is bounded by the factor; a rival that won wrongly may cost any.
constexpr double kNever = 1e300;
constexpr std::array<Round, 5> kFactors{
    {{1.5, kNever}, {1.15, 1.15}, {1, 1.03}, {1, 1.03}, {1, 1.03}}};

// By how much the longest of the first way's times may exceed the least for a rival to win before
// the last round.
constexpr double kSteady = 1.25;

// A rival whose first two runs are slower by this factor is not run again.
constexpr double kFarSlower = 1.5;

}  // namespace

void Race::add(std::chrono::nanoseconds time) {
  winner_.reset();
  const uint32_t round = rounds(), at = runs_ % kTurn;
  const Way way = next();
  if (purpose() == Run::kCounted) times_.at(way).at(counted() + at - (kTurn - kCounted)) = time;
  ++runs_;
  if (way == kRival && round == 0 && at < kTurn - kCounted) {
    at_first_ = std::min(at_first_, time);
    if (at + 1 == kTurn - kCounted && is_far_slower_at_first()) return end_first_round();
  }
  if (runs_ % (2 * kTurn) != 0) return;
  const bool last = round + 1 == kRounds;
  if ((last || first_is_steady()) && wins_by(kRival, kFactors.at(round).rival))
    winner_ = kRival;
  else if (last || wins_by(kFirst, kFactors.at(round).first))
    winner_ = kFirst;
}

bool Race::is_far_slower_at_first() const {
  const auto& first = times_.at(kFirst);
  const auto slowest = *std::max_element(first.begin(), first.begin() + kCounted);
  return double(at_first_.count()) > kFarSlower * double(slowest.count());
}

void Race::end_first_round() {
  std::fill_n(times_.at(kRival).begin(), kCounted, at_first_);
  runs_ = 2 * kTurn;
  winner_ = kFirst;
}

std::chrono::nanoseconds Race::least(Way way) const {
  const auto& times = times_.at(way);
  const auto least = *std::min_element(times.begin(), times.begin() + counted());
  return way == kFirst ? std::min(least, known_) : least;
}

std::chrono::nanoseconds Race::quartile(Way way) const {
  auto times = times_.at(way);
  const auto end = times.begin() + counted();
  std::sort(times.begin(), end);
  return times.at(counted() / 4);
}

bool Race::first_is_steady() const {
  const auto begin = times_.at(kFirst).begin();
  const auto [least, longest] = std::minmax_element(begin, begin + counted());
  return double(longest->count()) <= kSteady * double(least->count());
}

bool Race::wins_by(Way way, double factor) const {
  const Way other = way == kFirst ? kRival : kFirst;
  return double(least(way).count()) * factor < double(least(other).count()) &&
         double(quartile(way).count()) * factor < double(quartile(other).count());
}

}  // namespace torch_lazy
