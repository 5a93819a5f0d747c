#include "trace/seams.h"

#include <c10/util/hash.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "tape/signature.h"

namespace torch_lazy {
namespace {

uint64_t line_of(const Tape& tape, size_t operation) {
  return c10::get_hash(tape.entry(operation).op, tape.entry(operation).location);
}

uint64_t hash_of(const Tape& tape, size_t begin, size_t count) {
  uint64_t hash = 0;
  for (size_t i = begin; i < begin + count; ++i) hash = c10::hash_combine(hash, signature(tape, i));
  return hash;
}

size_t common_beginning(c10::ArrayRef<uint64_t> a, c10::ArrayRef<uint64_t> b) {
  return size_t(std::ranges::mismatch(a, b).in1 - a.begin());
}

size_t common_end(c10::ArrayRef<uint64_t> a, c10::ArrayRef<uint64_t> b) {
  const size_t most = std::min(a.size(), b.size());
  size_t count = 0;
  while (count < most && a[a.size() - 1 - count] == b[b.size() - 1 - count]) ++count;
  return count;
}

// The first place from `begin` on whose `count` operations do not stand before it too, in an
// earlier layer for instance, where the seam would be taken for them.
size_t first_of_its_own(c10::ArrayRef<uint64_t> signatures, size_t begin, size_t count) {
  const auto hash_at = [&](size_t at) {
    uint64_t hash = 0;
    for (size_t i = at; i < at + count; ++i) hash = c10::hash_combine(hash, signatures[i]);
    return hash;
  };
  std::unordered_set<uint64_t> earlier;
  for (size_t at = 0; at + count <= signatures.size(); ++at)
    if (earlier.insert(hash_at(at)).second && at >= begin) return at;
  return signatures.size();
}

}  // namespace

void Seams::note_new(const Tape& tape) {
  // What follows a seam is not compared with windows that the seam would part: it has as inputs
  // what they made.
  end_window(false);
  Signatures signatures;
  const auto family = [&](Families& families, size_t begin, size_t count) -> Family& {
    if (families.size() >= kMostFamilies) families.clear();
    // Behind a seam it is known that windows do not repeat.
    const Family made{.left_alone = behind_seam_ ? 0 : kLeftAlone};
    return families.try_emplace(c10::hash_combine(hash_of(tape, begin, count), behind_seam_), made)
        .first->second;
  };
  if (tape.size() > kLeastBeforeBranch)
    compare(Kind::kBranch, family(by_beginning_, 0, kLeastBeforeBranch), tape, signatures);
  if (tape.size() > kLeastAfterMerge)
    compare(Kind::kMerge, family(by_end_, tape.size() - kLeastAfterMerge, kLeastAfterMerge), tape,
            signatures);
}

void Seams::compare(Kind kind, Family& family, const Tape& tape, Signatures& signatures) {
  if (family.left_alone > 0) {
    --family.left_alone;
    return;
  }
  if (family.futile >= kMostFutile) return;
  for (size_t i = signatures.size(); i < tape.size(); ++i) signatures.push_back(signature(tape, i));
  const size_t size = tape.size();
  const auto add_branch = [&] {
    const size_t common = common_beginning(signatures, family.signatures);
    // Of windows one of which goes on where the other ends, the seam would be the end of that.
    return common >= kLeastBeforeBranch && common < size && common < family.signatures.size() &&
           add(kind, tape, common);
  };
  const auto add_merge = [&] {
    const size_t common = common_end(signatures, family.signatures);
    // What is alike as a whole differs in something that no seam parts.
    const size_t begin = first_of_its_own(signatures, size - common, kOperations);
    return begin > 0 && begin + kLeastAfterMerge <= size && add(kind, tape, begin + kOperations);
  };
  if (!family.signatures.empty() && !(kind == Kind::kBranch ? add_branch() : add_merge()))
    ++family.futile;
  family.signatures = family.futile < kMostFutile ? signatures : Signatures();
}

uint64_t Seams::signature_at(Kind kind, const Tape& tape, size_t operation) {
  return kind == Kind::kBranch ? line_of(tape, operation) : signature(tape, operation);
}

bool Seams::add(Kind kind, const Tape& tape, size_t end) {
  const Tape::Entry& last = tape.entry(end - 1);
  Seam seam{.kind = kind,
            .signatures = {},
            .op = last.op,
            .location = last.location,
            .least_operations = kind == Kind::kBranch ? end : kOperations};
  for (size_t i = 0; i < kOperations; ++i)
    seam.signatures[i] = signature_at(kind, tape, end - kOperations + i);
  if (const auto known = std::ranges::find(seams_, seam.signatures, &Seam::signatures);
      known != seams_.end()) {
    if (known->least_operations <= seam.least_operations) return false;
    known->least_operations = seam.least_operations;
    return true;
  }
  if (seams_.size() < kMostSeams) {
    seams_.push_back(seam);
    return true;
  }
  const auto given_up = std::ranges::find_if(seams_, &Seam::given_up);
  if (given_up == seams_.end()) return false;
  *given_up = seam;
  return true;
}

void Seams::end_window(bool repeated) {
  // What a window before a branch is, the branch decides; before a merge it is new each time.
  if (repeated && begun_at_ != kNone) seams_[begun_at_].flushes_in_vain = 0;
  if (repeated && reached_ != kNone && seams_[reached_].kind == Kind::kBranch)
    seams_[reached_].flushes_in_vain = 0;
  begun_at_ = std::exchange(reached_, kNone);
}

void Seams::note_flush(bool at_seam) {
  behind_seam_ = at_seam;
  if (at_seam) return;
  for (Seam& seam : seams_) seam.armed = true;
}

bool Seams::is_at_seam(const Tape& tape) {
  if (tape.size() <= kOperations) return false;
  const Tape::Entry& last = tape.entry(tape.size() - 1);
  for (size_t i = 0; i < seams_.size(); ++i) {
    Seam& seam = seams_[i];
    if (seam.op != last.op || seam.location != last.location || !seam.armed ||
        tape.size() < seam.least_operations || seam.given_up())
      continue;
    size_t at = tape.size() - kOperations;
    const auto is_equal = [&](uint64_t expected) {
      return signature_at(seam.kind, tape, at++) == expected;
    };
    if (!std::ranges::all_of(seam.signatures, is_equal)) continue;
    seam.armed = seam.kind == Kind::kBranch;
    ++seam.flushes_in_vain;
    reached_ = i;
    return true;
  }
  return false;
}

}  // namespace torch_lazy
