#include "trace/changes.h"

#include <c10/util/hash.h>

#include <algorithm>

#include "tape/signature.h"

namespace torch_lazy {

uint64_t lines_signature(const Tape& tape, size_t end, size_t operations) {
  uint64_t hash = operations;
  for (size_t i = end - operations; i < end; ++i)
    hash = c10::hash_combine(hash, line_signature(tape, i));
  return hash;
}

std::vector<Border> Changes::borders(const std::vector<bool>& is_new) {
  std::vector<Border> borders;
  const auto add = [&](size_t begin, size_t at) {
    if (at == 0 || at == is_new.size()) return;
    const size_t operations = at - begin;
    borders.push_back({at, std::min(operations, kMostKnownBy), operations});
  };
  size_t changing = 0;  // begin of what is not known to repeat
  for (size_t begin = 0; begin < is_new.size();) {
    const auto run = std::find(is_new.begin() + ptrdiff_t(begin), is_new.end(), true);
    const auto end = size_t(run - is_new.begin());
    if (end - begin >= kLeastRepeating) {
      add(changing, begin);
      add(begin, end);
      changing = end;
    }
    begin = std::max(end, begin + 1);
    while (begin < is_new.size() && is_new[begin]) ++begin;
  }
  return borders;
}

Changes::Found Changes::note_new(const Tape& tape) {
  if (pass_by_ > 0) {
    --pass_by_;
    return {};
  }
  if (calls_.size() > kMostCalls) calls_.clear();
  const std::vector<uint64_t> signatures = signatures_of_calls(tape);
  std::vector<bool> is_new;
  is_new.reserve(tape.size());
  for (const uint64_t signature : signatures) is_new.push_back(!calls_.contains(signature));
  calls_.insert(signatures.begin(), signatures.end());
  bool has_new_lines = false;
  for (size_t i = 0; i < tape.size(); ++i)
    has_new_lines |= calls_.insert(line_signature(tape, i)).second;
  Found found;
  if (has_new_lines) return found;
  const std::vector<Border> all = borders(is_new);
  found.any = !all.empty();
  futile_ = found.any ? 0 : futile_ + 1;
  pass_by_ = std::min(futile_ / kFutile, kMostPassedBy);
  if (candidates_.size() > kMostBorders) candidates_.clear();
  std::unordered_set<uint64_t> counted;
  for (const Border& border : all) {
    const uint64_t key = c10::hash_combine(lines_signature(tape, border.at, border.known_by),
                                           uint64_t(border.is_known_by_all()));
    int& windows = candidates_[key];
    if (counted.insert(key).second) ++windows;
    if (windows >= kLeastWindows) found.borders.push_back(border);
  }
  return found;
}

}  // namespace torch_lazy
