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

}  // namespace

void Race::add(std::chrono::nanoseconds time) {
  winner_.reset();
  const uint32_t round = rounds(), at = runs_ % kTurn;
  if (purpose() == Run::kCounted) times_.at(next()).at(counted() + at - (kTurn - kCounted)) = time;
  ++runs_;
  if (runs_ % (2 * kTurn) != 0) return;
  if (wins_by(kRival, kFactors.at(round).rival))
    winner_ = kRival;
  else if (round + 1 == kRounds || wins_by(kFirst, kFactors.at(round).first))
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

bool Race::wins_by(Way way, double factor) const {
  const Way other = way == kFirst ? kRival : kFirst;
  return double(least(way).count()) * factor < double(least(other).count()) &&
         double(quartile(way).count()) * factor < double(quartile(other).count());
}

}  // namespace torch_lazy
