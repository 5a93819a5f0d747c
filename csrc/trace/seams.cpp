#include "trace/seams.h"

#include <c10/util/hash.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "tape/signature.h"

namespace torch_lazy {
namespace {

uint64_t hash_of_end(const Tape& tape) {
  uint64_t hash = 0;
  for (size_t i = tape.size() - Seams::kLeast; i < tape.size(); ++i)
    hash = c10::hash_combine(hash, c10::get_hash(tape.entry(i).op, tape.entry(i).location));
  return hash;
}

size_t common_end(c10::ArrayRef<uint64_t> a, c10::ArrayRef<uint64_t> b) {
  const size_t most = std::min(a.size(), b.size());
  size_t count = 0;
  while (count < most && a[a.size() - 1 - count] == b[b.size() - 1 - count]) ++count;
  return count;
}

}  // namespace

void Seams::note_new(const Tape& tape) {
  const size_t begun_at = begun_at_;
  end_window(false);
  if (tape.size() < kLeast) return;
  if (ends_.size() >= kMostEnds) ends_.clear();
  // What follows a seam is not compared with windows that the seam would part: it has as inputs
  // what they made.
  End& end = ends_[c10::hash_combine(hash_of_end(tape), begun_at)];
  if (end.seen < kIgnored) {
    ++end.seen;
    return;
  }
  if (end.futile >= kMostFutile) return;
  std::vector<uint64_t> signatures;
  for (size_t i = 0; i < tape.size(); ++i) signatures.push_back(signature(tape, i));
  if (!end.signatures.empty()) {
    const size_t common = common_end(signatures, end.signatures);
    // What is alike as a whole differs in something that no seam parts.
    const size_t begin = first_of_its_own(signatures, signatures.size() - common);
    if (begin == 0 || begin + kLeast > signatures.size() || !add(tape, signatures, begin))
      ++end.futile;
  }
  end.signatures = std::move(signatures);
  if (end.futile >= kMostFutile) end.signatures = {};
}

// The first place from `begin` on whose operations do not stand before it too, in an earlier layer
// for instance, where the seam would be taken for them.
size_t Seams::first_of_its_own(c10::ArrayRef<uint64_t> signatures, size_t begin) {
  const auto hash_at = [&](size_t at) {
    uint64_t hash = 0;
    for (size_t i = at; i < at + kOperations; ++i) hash = c10::hash_combine(hash, signatures[i]);
    return hash;
  };
  std::unordered_set<uint64_t> earlier;
  for (size_t at = 0; at + kOperations <= signatures.size(); ++at)
    if (earlier.insert(hash_at(at)).second && at >= begin) return at;
  return signatures.size();
}

bool Seams::add(const Tape& tape, c10::ArrayRef<uint64_t> signatures, size_t begin) {
  const Tape::Entry& last = tape.entry(begin + kOperations - 1);
  Seam seam{.signatures = {}, .op = last.op, .location = last.location};
  std::ranges::copy(signatures.slice(begin, kOperations), seam.signatures.begin());
  const auto known = std::ranges::find(seams_, seam.signatures, &Seam::signatures);
  if (known != seams_.end()) return false;
  if (seams_.size() < kMostSeams) {
    seams_.push_back(seam);
    return true;
  }
  const auto given_up = std::ranges::find_if(
      seams_, [](const Seam& other) { return other.flushes_in_vain >= kMostInVain; });
  if (given_up == seams_.end()) return false;
  *given_up = seam;
  return true;
}

void Seams::end_window(bool repeated) {
  if (repeated && begun_at_ != kNone) seams_[begun_at_].flushes_in_vain = 0;
  begun_at_ = std::exchange(reached_, kNone);
}

void Seams::rearm() {
  for (Seam& seam : seams_) seam.armed = true;
}

bool Seams::is_at_seam(const Tape& tape) {
  if (tape.size() <= kOperations) return false;
  const Tape::Entry& last = tape.entry(tape.size() - 1);
  for (size_t i = 0; i < seams_.size(); ++i) {
    Seam& seam = seams_[i];
    if (seam.op != last.op || seam.location != last.location || !seam.armed ||
        seam.flushes_in_vain >= kMostInVain)
      continue;
    size_t at = tape.size() - kOperations;
    const auto is_equal = [&](uint64_t expected) { return signature(tape, at++) == expected; };
    if (!std::ranges::all_of(seam.signatures, is_equal)) continue;
    seam.armed = false;
    ++seam.flushes_in_vain;
    reached_ = i;
    return true;
  }
  return false;
}

}  // namespace torch_lazy
