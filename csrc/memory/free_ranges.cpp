#include "memory/free_ranges.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace torch_lazy {

// Nodes of the trees are moved, not allocated again, where a range only changes.
void FreeRanges::resize(ByAddress::iterator range, size_t bytes) {
  auto node = by_size_.extract({range->second, range->first});
  node.value().first = bytes;
  by_size_.insert(std::move(node));
  range->second = bytes;
}

void FreeRanges::remove(ByAddress::iterator range) {
  by_size_.erase({range->second, range->first});
  by_address_.erase(range);
}

void FreeRanges::count_taken(size_t bytes) {
  bytes_ -= bytes;
  fewest_ = std::min(fewest_, bytes_);
}

size_t FreeRanges::begin_period() {
  return std::exchange(fewest_, bytes_);
}

void FreeRanges::add(Range range) noexcept {
  bytes_ += range.bytes;
  auto next = by_address_.upper_bound(range.start);
  if (next != by_address_.end() && next->first == range.start + range.bytes) {
    range.bytes += next->second;
    const auto joined = next++;
    remove(joined);
  }
  if (next != by_address_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == range.start)
      return resize(previous, previous->second + range.bytes);
  }
  by_address_.emplace_hint(next, range.start, range.bytes);
  by_size_.emplace(range.bytes, range.start);
}

char* FreeRanges::take(size_t bytes) noexcept {
  const auto best = by_size_.lower_bound({bytes, nullptr});
  if (best == by_size_.end()) return nullptr;
  const auto [size, start] = *best;
  count_taken(bytes);
  const auto range = by_address_.find(start);
  if (size == bytes) {
    remove(range);
    return start;
  }
  auto sized = by_size_.extract(best);
  sized.value() = {size - bytes, start + bytes};
  by_size_.insert(std::move(sized));
  const auto next = std::next(range);
  auto placed = by_address_.extract(range);
  placed.key() = start + bytes;
  placed.mapped() = size - bytes;
  by_address_.insert(next, std::move(placed));
  return start;
}

FreeRanges::Range FreeRanges::take_at_most(size_t bytes, size_t unit) noexcept {
  if (by_size_.empty()) return {nullptr, 0};
  const auto larger = by_size_.upper_bound({bytes, reinterpret_cast<char*>(UINTPTR_MAX)});
  if (larger != by_size_.begin()) {
    const auto [size, start] = *std::prev(larger);
    count_taken(size);
    remove(by_address_.find(start));
    return {start, size};
  }
  const auto [size, start] = *by_size_.rbegin();
  char* const end = start + size;
  const uintptr_t least = reinterpret_cast<uintptr_t>(end - bytes);
  const uintptr_t first = (least + unit - 1) & ~(uintptr_t(unit) - 1);
  const uintptr_t last = reinterpret_cast<uintptr_t>(end);
  if (first >= last) return {nullptr, 0};
  const size_t taken = last - first;
  count_taken(taken);
  resize(by_address_.find(start), size - taken);
  return {end - taken, taken};
}

std::vector<FreeRanges::Range> FreeRanges::take_all() noexcept {
  std::vector<Range> all;
  for (const auto& [start, bytes] : by_address_) all.push_back({start, bytes});
  by_address_.clear();
  by_size_.clear();
  count_taken(bytes_);
  return all;
}

}  // namespace torch_lazy
