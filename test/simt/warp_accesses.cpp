#include "simt/warp_accesses.h"

#include <algorithm>

namespace torch_lazy::simt {
namespace {

constexpr uintptr_t kSectorBytes = 32;
constexpr uintptr_t kBankBytes = 4;
constexpr size_t kBanks = 32;

using Addresses = std::array<uintptr_t, 32>;

// Of pieces of memory in order: how many different units of `unit` bytes they touch.
int64_t units_touched(const uintptr_t* begin, const uintptr_t* end, uintptr_t bytes,
                      uintptr_t unit) {
  int64_t touched = 0;
  uintptr_t next = 0;  // the first that is not counted yet
  for (const uintptr_t* address = begin; address != end; ++address) {
    const uintptr_t first = std::max(*address / unit, next);
    const uintptr_t last = (*address + bytes - 1) / unit;
    if (last + 1 <= first) continue;
    touched += static_cast<int64_t>(last + 1 - first);
    next = last + 1;
  }
  return touched;
}

// The most words of one bank.
int64_t passes(const uintptr_t* begin, const uintptr_t* end, uintptr_t bytes) {
  std::array<int64_t, kBanks> words{};
  uintptr_t next = 0;
  for (const uintptr_t* address = begin; address != end; ++address) {
    const uintptr_t last = (*address + bytes - 1) / kBankBytes;
    for (uintptr_t word = std::max(*address / kBankBytes, next); word <= last; ++word) {
      ++words[word % kBanks];
    }
    next = std::max(next, last + 1);
  }
  return *std::max_element(words.begin(), words.end());
}

int64_t rounded_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

void WarpAccesses::count(const Site* sites, Report& report) {
  for (uint32_t number : used_) {
    PerSite& at = sites_[number];
    const Site& site = sites[number];
    const bool store = site.kind != SiteKind::kLoad;
    Traffic& traffic = at.shared ? store ? report.shared_stores : report.shared_loads
                       : store   ? report.stores
                                 : report.loads;
    const auto bytes = static_cast<uintptr_t>(site.bytes);
    for (Group& group : at.groups) {
      if (group.count == 0) break;
      uintptr_t* const begin = group.addresses.data();
      uintptr_t* const end = begin + group.count;
      if (!std::is_sorted(begin, end)) std::sort(begin, end);
      ++traffic.requests;
      traffic.bytes += int64_t{group.count} * site.bytes;
      const int64_t different = units_touched(begin, end, bytes, 1);
      if (at.shared) {
        traffic.passes += passes(begin, end, bytes);
        traffic.passes_needed += rounded_up(different, kBanks * kBankBytes);
      } else {
        traffic.sectors += units_touched(begin, end, bytes, kSectorBytes);
        traffic.sectors_needed += rounded_up(different, kSectorBytes);
      }
      group.count = 0;
    }
    at.times.fill(0);
    at.used = false;
  }
  used_.clear();
}

}  // namespace torch_lazy::simt
