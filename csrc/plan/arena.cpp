#include "plan/arena.h"

#include <algorithm>
#include <map>

namespace torch_lazy {
namespace {

constexpr int64_t kAlignment = 64;  // bytes: a cache line, and the widest vector

}  // namespace

size_t Arena::add(int64_t bytes, size_t step) {
  const int64_t rounded = std::max<int64_t>(bytes + kAlignment - 1, kAlignment) / kAlignment;
  values_.push_back({rounded * kAlignment, step, step});
  return values_.size() - 1;
}

void Arena::use(size_t index, size_t step) {
  values_[index].last = std::max(values_[index].last, step);
}

void Arena::assign() {
  std::vector<size_t> by_birth(values_.size()), by_death(values_.size());
  for (size_t i = 0; i < values_.size(); ++i) by_birth[i] = by_death[i] = i;
  std::stable_sort(by_birth.begin(), by_birth.end(),
                   [&](size_t a, size_t b) { return values_[a].first < values_[b].first; });
  std::stable_sort(by_death.begin(), by_death.end(),
                   [&](size_t a, size_t b) { return values_[a].last < values_[b].last; });
  std::map<int64_t, int64_t> gaps;  // offset -> bytes, within what has been handed out so far
  const auto give_back = [&](int64_t offset, int64_t bytes) {
    auto next = gaps.lower_bound(offset);
    if (next != gaps.end() && offset + bytes == next->first) {
      bytes += next->second;
      next = gaps.erase(next);
    }
    if (next != gaps.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == offset) {
        before->second += bytes;
        return;
      }
    }
    gaps.emplace(offset, bytes);
  };
  size_t dead = 0;
  for (const size_t index : by_birth) {
    Value& value = values_[index];
    for (; dead < by_death.size() && values_[by_death[dead]].last < value.first; ++dead)
      give_back(values_[by_death[dead]].offset, values_[by_death[dead]].bytes);
    const auto fits = std::find_if(gaps.begin(), gaps.end(),
                                   [&](const auto& gap) { return gap.second >= value.bytes; });
    if (fits != gaps.end()) {
      value.offset = fits->first;
      const int64_t rest = fits->second - value.bytes;
      gaps.erase(fits);
      if (rest > 0) gaps.emplace(value.offset + value.bytes, rest);
      continue;
    }
    value.offset = bytes_;
    if (!gaps.empty()) {  // the last gap reaches the end: grow it
      const auto last = std::prev(gaps.end());
      if (last->first + last->second == bytes_) {
        value.offset = last->first;
        gaps.erase(last);
      }
    }
    bytes_ = value.offset + value.bytes;
  }
}

}  // namespace torch_lazy
