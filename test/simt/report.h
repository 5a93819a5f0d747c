// What a launch did: defects, and how it used memory.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace torch_lazy::simt {

enum class Defect {
  kOutOfBounds,
  kUnaligned,
  kUninitialized,
  kRace,
  kDivergence,  // threads that wait for others that do not come
};

// Accesses of warps, as a memory controller sees them.
struct Traffic {
  int64_t requests = 0;        // accesses that a warp's lanes make together
  int64_t bytes = 0;           // of all threads
  int64_t distinct_bytes = 0;  // of the launch: what had to be moved once at least
  // Global memory, in sectors of 32 bytes: those that the requests touch, and as many as could hold
  // the different bytes of each.
  int64_t sectors = 0;
  int64_t sectors_needed = 0;
  // Shared memory: times that its banks have to be read or written, and as many as would do if no
  // two lanes met in a bank.
  int64_t passes = 0;
  int64_t passes_needed = 0;
};

struct Finding {
  Defect defect;
  std::string text;  // with line, thread, block and address
  int64_t times = 1;
};

class Report {
 public:
  std::vector<Finding> findings;
  Traffic loads, stores;                // of global memory
  Traffic shared_loads, shared_stores;  // of shared memory

  // Of the same defect at the same place only the first is kept, and the others counted.
  template <class Describe>
  void add(Defect defect, uint32_t site, const Describe& describe) {
    const auto [at, is_new] = places_.try_emplace({defect, site}, findings.size());
    if (is_new) {
      findings.push_back({defect, describe()});
    } else {
      ++findings[at->second].times;
    }
  }

  bool has(Defect defect) const;
  // A line a finding; empty where there is none.
  std::string text() const;

 private:
  std::map<std::pair<Defect, uint32_t>, size_t> places_;
};

}  // namespace torch_lazy::simt
