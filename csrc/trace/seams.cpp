#include "trace/seams.h"

#include <c10/util/hash.h>

#include <algorithm>
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
  end_window(false);
  if (tape.size() < kLeast) return;
  if (ends_.size() >= kMostEnds) ends_.clear();
  End& end = ends_[hash_of_end(tape)];
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
    const bool differ = common < signatures.size() || common < end.signatures.size();
    if (common < kLeast || !differ || !add(tape, signatures, signatures.size() - common))
      ++end.futile;
  }
  end.signatures = std::move(signatures);
}

bool Seams::add(const Tape& tape, c10::ArrayRef<uint64_t> signatures, size_t begin) {
  const size_t last = begin + kOperations - 1;
  Seam seam{.signatures = {}, .op = tape.entry(last).op, .location = tape.entry(last).location};
  std::copy_n(signatures.begin() + begin, kOperations, seam.signatures.begin());
  const bool known = std::ranges::any_of(
      seams_, [&](const Seam& other) { return other.signatures == seam.signatures; });
  if (known || seams_.size() >= kMostSeams) return false;
  seams_.push_back(seam);
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
  if (tape.size() < kOperations) return false;
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
