// The accesses of one warp, put together as its lanes make them.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "simt/module_layout.h"
#include "simt/report.h"

namespace torch_lazy::simt {

// Lanes run one after the other. The n-th time that a lane is at a place in the source since the
// warp's lanes last met belongs with the n-th time of the others: exact where loops run equally
// often in all lanes, or end early in some.
class WarpAccesses {
 public:
  explicit WarpAccesses(size_t sites) : sites_(sites) {}

  void add(uint32_t site, uint32_t lane, uintptr_t address, bool shared) {
    PerSite& at = sites_[site];
    if (!at.used) {
      at.used = true;
      at.shared = shared;
      used_.push_back(site);
    }
    const uint32_t time = at.times[lane]++;
    if (time >= at.groups.size()) at.groups.emplace_back();
    Group& group = at.groups[time];
    group.addresses[group.count++] = address;
  }

  // Counts what the lanes did since the last call.
  void count(const Site* sites, Report& report);

 private:
  struct Group {
    uint32_t count = 0;
    std::array<uintptr_t, 32> addresses;
  };
  struct PerSite {
    bool used = false;
    bool shared = false;
    std::array<uint32_t, 32> times{};  // of each lane
    std::vector<Group> groups;         // by time
  };

  std::vector<PerSite> sites_;
  std::vector<uint32_t> used_;
};

}  // namespace torch_lazy::simt
