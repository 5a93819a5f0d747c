#include "trace/bypass.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/metrics.h"

namespace torch_lazy {
namespace {

// Sync points until another race where the last one was of something else.
constexpr size_t kSoon = Bypass::kStays / 16;

}  // namespace

bool Bypass::add(uint64_t op, size_t elements) {
  const uint64_t operator_bit = uint64_t(1) << (op % 64);
  ++operations_;
  elements_ += elements;
  switch (state_) {
    case State::kRacing:
      operators_ |= operator_bit;
      return true;
    case State::kLeavingOut:
      // It may not come to a sync point at all.
      if (++left_out_ <= 2 * to_leave_out_) return true;
      break;
    default:
      if ((operators_ & operator_bit) && operations_ <= 2 * most_operations_ &&
          elements_ <= 2 * most_elements_)
        return true;
      until_race_ = std::min(until_race_, kSoon);
  }
  record();
  return false;
}

void Bypass::record() {
  state_ = State::kRecording;
  is_on_ = false;
  race_.reset();
  syncs_ = operations_ = elements_ = 0;
}

void Bypass::note_window(WindowState state, size_t operations) {
  if (state == WindowState::kHot || state == WindowState::kWarm) {
    in_vain_ -= std::min(in_vain_, kWorth * operations);
    if (state == WindowState::kHot) return;
    // Something new is being learnt. What a race would tell now, or has told, is soon out of date.
    record();
    until_race_ = std::min(until_race_, kSoon);
    return;
  }
  in_vain_ += operations;
  if (in_vain_ < kPatience || state_ != State::kRecording) return;
  state_ = State::kLeavingOut;
  to_leave_out_ = kLeftOut * operations;
  left_out_ = 0;
  is_on_ = true;
}

void Bypass::note_sync() {
  if (until_race_ > 0) --until_race_;
  switch (state_) {
    case State::kLeavingOut:
      if (left_out_ >= to_leave_out_) record();
      break;
    case State::kRecording:
      if (until_race_ > 0) break;
      if (syncs_++ == 0) since_ = now_();
      if (syncs_ <= kBeforeRace) break;
      syncs_ = 0;
      if (const auto between = (now_() - since_) / kBeforeRace; between <= kMostBetween)
        begin_race(between);
      break;
    case State::kRacing:
      most_operations_ = std::max(most_operations_, operations_);
      most_elements_ = std::max(most_elements_, elements_);
      if (++syncs_ >= kLeastSyncs) end_run();
      break;
    case State::kBypassing:
      if (until_race_ == 0) record();
      break;
  }
  operations_ = elements_ = 0;
}

void Bypass::begin_race(std::chrono::nanoseconds between) {
  state_ = State::kRacing;
  race_.emplace(between);
  since_ = now_();
  most_operations_ = most_elements_ = 0;
  operators_ = 0;
}

void Bypass::end_run() {
  const std::chrono::nanoseconds now = now_(), taken = now - since_;
  if (taken < kLeastTime) return;
  race_->add(taken / syncs_);
  syncs_ = 0;
  since_ = now;
  if (const auto winner = race_->winner())
    end_race(*winner);
  else
    is_on_ = race_->next() == Race::kRival;
}

void Bypass::end_race(Race::Way winner) {
  const bool again = last_winner_ == winner;
  stays_ = again ? std::min(2 * stays_, kStaysAtMost) : kStays;
  if (winner == Race::kRival && !again)
    metrics().explain_choice(fmt::format(
        "sync points with up to {} operations between them: {} ns from one to the next where they "
        "are recorded, {} ns where they are not; not recorded for now",
        most_operations_, race_->least(Race::kFirst).count(), race_->least(Race::kRival).count()));
  last_winner_ = winner;
  record();
  until_race_ = stays_;
  if (winner == Race::kFirst) return;
  state_ = State::kBypassing;
  is_on_ = true;
}

}  // namespace torch_lazy
