#include "runtime/free_ranges.h"

#include <cstdint>
#include <iterator>

namespace torch_lazy {

// Nodes of the trees are moved, not made anew, where a range only changes.
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

void FreeRanges::add(Range range) {
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

char* FreeRanges::take(size_t bytes) {
  const auto best = by_size_.lower_bound({bytes, nullptr});
  if (best == by_size_.end()) return nullptr;
  const auto [size, start] = *best;
  bytes_ -= bytes;
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

FreeRanges::Range FreeRanges::take_from_largest(size_t wanted, size_t unit) {
  if (by_size_.empty()) return {nullptr, 0};
  const auto [size, start] = *by_size_.rbegin();
  const auto range = by_address_.find(start);
  size_t stays = 0;
  if (size > wanted) {
    const auto end = reinterpret_cast<uintptr_t>(start) + size - wanted;
    const uintptr_t rounded = end & ~(uintptr_t(unit) - 1);
    stays = rounded > reinterpret_cast<uintptr_t>(start)
                ? rounded - reinterpret_cast<uintptr_t>(start)
                : 0;
  }
  bytes_ -= size - stays;
  if (stays == 0)
    remove(range);
  else
    resize(range, stays);
  return {start + stays, size - stays};
}

}  // namespace torch_lazy
