#include "trace/bypass.h"

#include <fmt/format.h>

#include <utility>

#include "base/metrics.h"

namespace torch_lazy {

bool Bypass::add(uint64_t op, size_t elements) {
  ++stretch_.operations;
  stretch_.elements += elements;
  const size_t bit = op % operators_.size();
  if (state_ == State::kRacing)
    operators_.set(bit);
  else
    is_new_ |= state_ == State::kBypassing && !operators_[bit];
  if (stretch_.operations <= kLongest) return true;
  in_vain_ = syncs_in_vain_ = 0;
  end_by_others();
  return false;
}

void Bypass::record() {
  state_ = State::kRecording;
  is_on_ = false;
  race_.reset();
  syncs_ = most_recorded_ = 0;
}

void Bypass::end_by_others() {
  record();
  last_winner_.reset();
  learnt_ = 0;
  until_race_ = wait_;
  wait_ = std::min(2 * wait_, kMostSyncs);
}

void Bypass::note_window(WindowState state, size_t operations) {
  stretch_.operations += operations;
  ++windows_;
  operations_ += operations;
  if (state != WindowState::kHot && state != WindowState::kWarm) {
    new_operations_ += operations;
    in_vain_ = std::min(in_vain_ + operations, kOperationsInVain);
    return;
  }
  in_vain_ -= std::min(in_vain_, kWorth * operations);
  if (state == WindowState::kHot || learnt_ >= kMostLearnt) return;
  // Something is being learnt. What a race would tell now, or has told, is soon out of date.
  ++learnt_;
  if (state_ == State::kRecording || state_ == State::kRacing) record();
  until_race_ = std::min(until_race_, wait_);
}

void Bypass::note_sync() {
  const Stretch stretch = std::exchange(stretch_, {});
  const bool is_new = std::exchange(is_new_, false);
  if (until_race_ > 0) --until_race_;
  if (in_vain_ == 0)
    syncs_in_vain_ = most_in_vain_ = 0;
  else if (!is_on_ && stretch.operations > 0 && syncs_in_vain_ < kSyncsInVain)
    ++syncs_in_vain_;
  switch (state_) {
    case State::kLeavingOut:
      if (stretch.operations > 2 * most_in_vain_) in_vain_ = 0;  // something else has begun
      leave_out();
      break;
    case State::kRecording:
      most_in_vain_ = std::max(most_in_vain_, stretch.operations);
      leave_out();
      if (state_ != State::kRecording || until_race_ > 0) break;
      if (syncs_++ == 0) {
        since_ = now_();
        windows_ = operations_ = new_operations_ = 0;
      } else {
        most_recorded_ = std::max(most_recorded_, stretch.operations);
      }
      if (syncs_ > kBeforeRace) begin_race();
      break;
    case State::kRacing:
      if (stretch.operations > 2 * std::max(most_recorded_, kFewOperations)) return end_by_others();
      of_run_.operations = std::max(of_run_.operations, stretch.operations);
      of_run_.elements = std::max(of_run_.elements, stretch.elements);
      if (++syncs_ > kMostInRun) return end_by_others();
      if (2 * stretch.operations < most_recorded_) break;
      if (++large_ >= kLargeInRun && syncs_ >= kLeastSyncs) end_run();
      break;
    case State::kBypassing:
      new_in_a_row_ = is_new ? new_in_a_row_ + 1 : 0;
      if (new_in_a_row_ >= kNewInARow || stretch.exceeds(most_)) return end_by_others();
      if (until_race_ > 0) break;
      wait_ = kSoon;
      record();
      break;
  }
}

void Bypass::leave_out() {
  if (in_vain_ < kOperationsInVain || syncs_in_vain_ < kSyncsInVain) {
    if (state_ == State::kLeavingOut) record();
    return;
  }
  state_ = State::kLeavingOut;
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  is_on_ = random_ % kOneIn != 0;
}

bool Bypass::may_gain(std::chrono::nanoseconds taken) const {
  if (2 * new_operations_ > operations_) return false;  // recorded in vain: see leave_out()
  return taken <= kBeforeRace * kMostBetween ||
         (operations_ <= kFewInWindow * windows_ && taken <= operations_ * kShortOperation);
}

void Bypass::begin_race() {
  const std::chrono::nanoseconds now = now_();
  if (!may_gain(now - since_)) return record();
  state_ = State::kRacing;
  race_.emplace();
  syncs_ = large_ = 0;
  since_ = now;
  of_run_ = {};
  most_ = {SIZE_MAX, SIZE_MAX};
  if (last_winner_ != Race::kRival) operators_.reset();
}

void Bypass::end_run() {
  const std::chrono::nanoseconds now = now_(), taken = now - since_;
  if (taken < kLeastTime) return;
  if (is_on_) {
    most_.operations = std::min(most_.operations, of_run_.operations);
    most_.elements = std::min(most_.elements, of_run_.elements);
  }
  of_run_ = {};
  race_->add(taken / syncs_);
  syncs_ = large_ = 0;
  since_ = now;
  if (const auto winner = race_->winner())
    end_race(*winner);
  else
    is_on_ = race_->next() == Race::kRival;
}

void Bypass::end_race(Race::Way winner) {
  const bool again = last_winner_ == winner;
  stays_ = again ? std::min(2 * stays_, kMostSyncs) : kStays;
  last_winner_ = winner;
  until_race_ = stays_;
  if (winner == Race::kFirst) {
    learnt_ = 0;
    return record();
  }
  if (!again && wait_ == kSoon)
    metrics().explain_choice(fmt::format(
        "sync points with up to {} operations between them: {} ns from one to the next where they "
        "are recorded, {} ns where they are not; they are not until the next race",
        most_.operations, race_->least(Race::kFirst).count(), race_->least(Race::kRival).count()));
  record();
  state_ = State::kBypassing;
  is_on_ = true;
  new_in_a_row_ = 0;
}

}  // namespace torch_lazy
