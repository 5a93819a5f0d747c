#include "trace/seams.h"

#include <c10/util/hash.h>

#include <algorithm>
#include <utility>

#include "tape/signature.h"

namespace torch_lazy {
namespace {

std::vector<uint64_t> signatures_of(const Tape& tape, size_t begin, size_t end) {
  std::vector<uint64_t> signatures;
  signatures.reserve(end - begin);
  for (size_t i = begin; i < end; ++i) signatures.push_back(signature(tape, i));
  return signatures;
}

uint64_t hash_of(c10::ArrayRef<uint64_t> signatures) {
  uint64_t hash = 0;
  for (const uint64_t signature : signatures) hash = c10::hash_combine(hash, signature);
  return hash;
}

size_t common_beginning(c10::ArrayRef<uint64_t> a, c10::ArrayRef<uint64_t> b) {
  return size_t(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

void Seams::note_new(const Tape& tape) {
  end_window(false);
  const Changes::Found changes = changes_.note_new(tape);
  bool parts = changes.likely && changes.borders.empty();
  for (const Border& border : changes.borders) {
    const Tape::Entry& last = tape.entry(border.at - 1);
    const Added added =
        add({.kind = FlushReason::kChange,
             .mark = border.mark,
             .known_by = border.known_by(),
             .op = last.op,
             .location = last.location,
             .least_operations = border.operations,
             .most_operations = border.is_known_by_all() ? border.operations : SIZE_MAX,
             .ends_change = border.ends_change,
             .reached = flushes_});
    // To the others a window comes behind it only.
    if (&border == &changes.borders.front()) parts = added != Added::kGivenUp;
  }
  // What it is new by is known, or will be.
  if (parts || tape.size() <= kLeastOfAWindow) return;
  // What follows a seam has as inputs what a window that the seam would part has made.
  const uint64_t key = c10::hash_combine(hash_of(signatures_of(tape, 0, kLeastOfAWindow)),
                                         behind_ ? 1 + uint64_t(*behind_) : 0);
  auto family = families_.find(key);
  if (family == families_.end()) {
    if (families_.size() >= kMostFamilies) families_.clear();
    // Behind a branch it is known that there are paths.
    const bool has_paths = behind_ == FlushReason::kBranch;
    family = families_.emplace(key, Family{.left_alone = has_paths ? 0 : kLeftAlone}).first;
  }
  compare(family->second, tape);
}

void Seams::compare(Family& family, const Tape& tape) {
  if (family.left_alone > 0) {
    --family.left_alone;
    return;
  }
  if (family.futile >= kMostFutile) return;
  const size_t size = tape.size();
  std::vector<uint64_t> signatures = signatures_of(tape, 0, size);
  const auto add_branch = [&] {
    const size_t common = common_beginning(signatures, family.signatures);
    // Of windows one of which goes on where the other ends, the seam would be the end of that.
    if (common < kLeastOfAWindow || common == size || common == family.signatures.size())
      return false;
    const Tape::Entry& last = tape.entry(common - 1);
    return add({.kind = FlushReason::kBranch,
                .mark = lines_signature(tape, common, kKnownBy),
                .known_by = kKnownBy,
                .op = last.op,
                .location = last.location,
                .least_operations = common,
                .reached = flushes_}) == Added::kNew;
  };
  if (!family.signatures.empty() && !add_branch()) ++family.futile;
  if (family.futile >= kMostFutile) signatures.clear();
  family.signatures = std::move(signatures);
}

Seams::Added Seams::add(const Seam& seam) {
  const auto is_same = [&](const Seam& other) {
    return other.mark == seam.mark && other.most_operations == seam.most_operations;
  };
  if (const auto known = std::ranges::find_if(seams_, is_same); known != seams_.end()) {
    if (known->given_up()) return Added::kGivenUp;
    if (known->least_operations <= seam.least_operations) return Added::kKnown;
    known->least_operations = seam.least_operations;
    return Added::kNew;
  }
  if (seams_.size() < kMostSeams) {
    seams_.push_back(seam);
    return Added::kNew;
  }
  const auto replaced = std::ranges::min_element(seams_, {}, &Seam::reached);
  *replaced = seam;
  if (size_t(replaced - seams_.begin()) == begun_at_) begun_at_ = kNone;
  return Added::kNew;
}

void Seams::end_window(bool repeated) {
  const auto credit = [&](size_t seam) { seams_[seam].flushes_in_vain = 0; };
  if (repeated && begun_at_ != kNone) credit(begun_at_);
  if (repeated && reached_ != kNone) credit(reached_);
  begun_at_ = std::exchange(reached_, kNone);
}

void Seams::note_flush(FlushReason reason) {
  behind_ = is_seam(reason) ? std::optional(reason) : std::nullopt;
  if (behind_) return;
  begun_at_ = kNone;
  changes_.note_end_of_stretch();
}

std::optional<size_t> Seams::find_seam(const Tape& tape) const {
  const Tape::Entry& last = tape.entry(tape.size() - 1);
  for (size_t i = 0; i < seams_.size(); ++i) {
    const Seam& seam = seams_[i];
    if (seam.op == last.op && seam.location == last.location &&
        tape.size() >= seam.least_operations && tape.size() <= seam.most_operations &&
        !seam.given_up() && lines_signature(tape, tape.size(), seam.known_by) == seam.mark)
      return i;
  }
  return std::nullopt;
}

FlushReason Seams::reach(size_t index) {
  Seam& seam = seams_[index];
  seam.reached = ++flushes_;
  ++seam.flushes_in_vain;
  reached_ = index;
  return seam.kind;
}

}  // namespace torch_lazy
