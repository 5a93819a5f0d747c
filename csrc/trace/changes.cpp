#include "trace/changes.h"

#include <algorithm>
#include <utility>

#include "tape/signature.h"
#include "trace/flush_reason.h"

namespace torch_lazy {

std::vector<Border> Changes::borders(const std::vector<bool>& is_new) {
  std::vector<Border> borders;
  const auto add = [&](size_t begin, size_t at, bool ends_change) {
    if (at > 0 && at < is_new.size()) borders.push_back({at, at - begin, ends_change});
  };
  size_t changing = 0;  // begin of what is not known to repeat
  for (size_t begin = 0; begin < is_new.size();) {
    const auto run = std::find(is_new.begin() + ptrdiff_t(begin), is_new.end(), true);
    const auto end = size_t(run - is_new.begin());
    if (end - begin >= kLeastOfAWindow) {
      add(changing, begin, true);
      add(begin, end, false);
      changing = end;
    }
    begin = std::max(end, begin + 1);
    while (begin < is_new.size() && is_new[begin]) ++begin;
  }
  return borders;
}

Changes::Found Changes::note_new(const Tape& tape) {
  if (calls_.size() > kMostCalls) calls_.clear();
  if (lines_.size() > kMostLines) lines_.clear();
  if (candidates_.size() > kMostBorders) candidates_.clear();
  const bool begins_anew = !lines_.contains(line_signature(tape, 0));
  const size_t lines = lines_.size();
  for (size_t i = 0; i < tape.size(); ++i) lines_.insert(line_signature(tape, i));
  if (begins_anew) return {};
  if (++windows_ > kMostWindows) note_end_of_stretch();
  const std::vector<uint64_t> signatures = signatures_of_calls(tape);
  std::vector<bool> is_new;
  is_new.reserve(tape.size());
  for (const uint64_t signature : signatures)
    is_new.push_back(calls_.try_emplace(signature, stretch_).first->second == stretch_);
  std::vector<Border> all;
  if (lines_.size() == lines) all = borders(is_new);
  Found found;
  for (Border& border : all) {
    border.mark = lines_signature(tape, border.at, border.known_by());
    Candidate& candidate = candidates_[border.mark];
    if (std::exchange(candidate.last_stretch, stretch_) != stretch_) ++candidate.stretches;
    found.likely |= candidate.stretches > 1;
    if (candidate.stretches >= kLeastStretches) found.borders.push_back(border);
  }
  return found;
}

}  // namespace torch_lazy
