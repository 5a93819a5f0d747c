#include "trace/seams.h"

#include <c10/util/hash.h>

#include <algorithm>
#include <unordered_set>
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

size_t common_end(c10::ArrayRef<uint64_t> a, c10::ArrayRef<uint64_t> b) {
  const size_t most = std::min(a.size(), b.size());
  size_t count = 0;
  while (count < most && a[a.size() - 1 - count] == b[b.size() - 1 - count]) ++count;
  return count;
}

// The first place from `begin` on whose `count` operations do not stand before it too, in an
// earlier layer for instance, where the seam would be taken for them.
size_t first_of_its_own(c10::ArrayRef<uint64_t> signatures, size_t begin, size_t count) {
  std::unordered_set<uint64_t> earlier;
  for (size_t at = 0; at + count <= signatures.size(); ++at)
    if (earlier.insert(hash_of(signatures.slice(at, count))).second && at >= begin) return at;
  return signatures.size();
}

}  // namespace

void Seams::note_new(const Tape& tape) {
  end_window(false);
  Marks signatures;
  const auto look = [&](FlushReason kind, Families& families, size_t begin, size_t count) {
    // What follows a seam has as inputs what a window that the seam would part has made.
    const uint64_t key = c10::hash_combine(hash_of(signatures_of(tape, begin, begin + count)),
                                           behind_ ? 1 + uint64_t(*behind_) : 0);
    auto family = families.find(key);
    if (family == families.end()) {
      if (families.size() >= kMostFamilies) families.clear();
      // Behind a branch it is known that there are paths.
      const bool has_paths = behind_ == FlushReason::kBranch;
      family = families.emplace(key, Family{.left_alone = has_paths ? 0 : kLeftAlone}).first;
    }
    compare(kind, family->second, tape, signatures);
  };
  const size_t size = tape.size();
  if (size > kLeastBeforeBranch) look(FlushReason::kBranch, by_beginning_, 0, kLeastBeforeBranch);
  if (size > kLeastAfterMerge)
    look(FlushReason::kMerge, by_end_, size - kLeastAfterMerge, kLeastAfterMerge);
}

void Seams::compare(FlushReason kind, Family& family, const Tape& tape, Marks& signatures) {
  if (family.left_alone > 0) {
    --family.left_alone;
    return;
  }
  if (family.futile >= kMostFutile) return;
  const size_t size = tape.size();
  if (signatures.empty()) signatures = signatures_of(tape, 0, size);
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
  if (!family.signatures.empty() && !(kind == FlushReason::kBranch ? add_branch() : add_merge()))
    ++family.futile;
  family.signatures = family.futile < kMostFutile ? signatures : Marks();
}

uint64_t Seams::mark_at(FlushReason kind, const Tape& tape, size_t operation) {
  return kind == FlushReason::kBranch ? line_signature(tape, operation)
                                      : signature(tape, operation);
}

bool Seams::add(FlushReason kind, const Tape& tape, size_t end) {
  const Tape::Entry& last = tape.entry(end - 1);
  Seam seam{.kind = kind,
            .marks = {},
            .op = last.op,
            .location = last.location,
            .least_operations = kind == FlushReason::kBranch ? end : kOperations + 1,
            .reached = flushes_};
  for (size_t i = 0; i < kOperations; ++i)
    seam.marks[i] = mark_at(kind, tape, end - kOperations + i);
  if (const auto known = std::ranges::find(seams_, seam.marks, &Seam::marks);
      known != seams_.end()) {
    if (known->given_up() || known->least_operations <= seam.least_operations) return false;
    known->least_operations = seam.least_operations;
    return true;
  }
  if (seams_.size() < kMostSeams)
    seams_.push_back(seam);
  else
    *std::ranges::min_element(seams_, {}, &Seam::reached) = seam;
  return true;
}

void Seams::end_window(bool repeated) {
  const auto credit = [&](size_t seam) { seams_[seam].flushes_in_vain = 0; };
  if (repeated && begun_at_ != kNone) credit(begun_at_);
  // What comes to a branch is to repeat, what comes to a merge is new.
  if (repeated && reached_ != kNone && seams_[reached_].kind == FlushReason::kBranch)
    credit(reached_);
  begun_at_ = std::exchange(reached_, kNone);
}

void Seams::note_flush(FlushReason reason) {
  if (is_seam(reason)) {
    behind_ = reason;
    return;
  }
  if (!behind_) return;  // all are armed
  behind_.reset();
  begun_at_ = kNone;
  for (Seam& seam : seams_) seam.armed = true;
}

std::optional<size_t> Seams::find_seam(const Tape& tape) const {
  const Tape::Entry& last = tape.entry(tape.size() - 1);
  for (size_t i = 0; i < seams_.size(); ++i) {
    const Seam& seam = seams_[i];
    if (seam.op != last.op || seam.location != last.location || !seam.armed ||
        tape.size() < seam.least_operations || seam.given_up())
      continue;
    size_t at = tape.size() - kOperations;
    const auto is_equal = [&](uint64_t mark) { return mark_at(seam.kind, tape, at++) == mark; };
    if (std::ranges::all_of(seam.marks, is_equal)) return i;
  }
  return std::nullopt;
}

FlushReason Seams::reach(size_t index) {
  Seam& seam = seams_[index];
  seam.armed = seam.kind == FlushReason::kBranch;
  seam.reached = ++flushes_;
  ++seam.flushes_in_vain;
  reached_ = index;
  return seam.kind;
}

}  // namespace torch_lazy
