#include "trace/stretches.h"

#include <c10/util/hash.h>

#include <algorithm>

#include "tape/signature.h"

namespace torch_lazy {
namespace {

// A window may have no more than one operation where it comes to a seam.
uint64_t hash_of_beginning(const Tape& tape) {
  return line_signature(tape, 0);
}

}  // namespace

void Stretches::note(const Tape& tape) {
  if (windows_++ == 0) beginning_ = hash_of_beginning(tape);
}

void Stretches::note_new(const Tape& tape) {
  note(tape);
  is_new_ = true;
}

void Stretches::note_repeated(const Tape& tape, uint64_t id) {
  note(tape);
  hash_ = c10::hash_combine(hash_, id);
}

void Stretches::note_flush(bool at_seam) {
  if (at_seam || windows_ == 0) return;
  const bool parted = windows_ > 1;
  const auto known = beginnings_.find(beginning_);
  if (known != beginnings_.end()) {
    Beginning& beginning = known->second;
    whole_ -= size_t(beginning.whole);
    if (beginning.whole)
      end_whole(beginning);
    else if (parted)
      end_parted(beginning);
    whole_ += size_t(beginning.whole);
  } else if (parted) {
    if (beginnings_.size() >= kMostBeginnings) {
      beginnings_.clear();
      whole_ = 0;
    }
    end_parted(beginnings_[beginning_]);
  }
  hash_ = 0;
  windows_ = 0;
  is_new_ = false;
}

void Stretches::end_parted(Beginning& beginning) const {
  if (is_new_) {
    beginning.in_a_row = 0;
    return;
  }
  std::deque<uint64_t>& last = beginning.last;
  const auto found = std::ranges::find(last, hash_);
  const bool known = found != last.end();
  if (known)
    last.erase(found);
  else if (last.size() == kRemembered)
    last.pop_back();
  last.push_front(hash_);
  beginning.in_a_row = known ? beginning.in_a_row + 1 : 0;
  if (beginning.in_a_row < beginning.patience) return;
  beginning.whole = true;
  beginning.in_a_row = 0;
}

void Stretches::end_whole(Beginning& beginning) const {
  beginning.in_a_row = is_new_ ? beginning.in_a_row + 1 : 0;
  if (beginning.in_a_row < kNewInARow) return;
  beginning.whole = false;
  beginning.in_a_row = 0;
  beginning.patience *= 2;
}

bool Stretches::are_parted(const Tape& tape) const {
  if (whole_ == 0) return true;
  const auto found = beginnings_.find(windows_ > 0 ? beginning_ : hash_of_beginning(tape));
  return found == beginnings_.end() || !found->second.whole;
}

}  // namespace torch_lazy
