// What is looked at when a thread touches memory.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "simt/fiber.h"
#include "simt/memory.h"
#include "simt/program.h"
#include "simt/races.h"
#include "simt/report.h"
#include "simt/warp_accesses.h"

namespace torch_lazy::simt {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;

  uint32_t count() const { return x * y * z; }
  // Of the number in this grid or block, x the fastest.
  Dim3 index(uint32_t number) const { return {number % x, number / x % y, number / x / y}; }
};

std::string to_string(Dim3 index);  // "(3, 0, 0)"

class AccessMonitor {
 public:
  AccessMonitor(DeviceMemory& memory, const Program& program, Dim3 grid, Dim3 block,
                size_t dynamic_shared_bytes, Report& report);

  // Shared memory holds nothing again.
  void begin_block();
  // The address to use: the same, or that of memory which holds zeros and which no one reads, where
  // the access is out of bounds. `stack` is the thread's own.
  void* access(void* address, uint32_t site, const Accessor& who, const Fiber& stack);
  // Counts what the lanes of a warp have done together since the last call.
  void count_warp() { accesses_.count(sites_, report_); }
  // Counts what the launch touched; after its end.
  void count_distinct_bytes();

  // "line 3: y[i] = x[i];: thread (1, 0, 0) of block (0, 0, 0)".
  std::string place(uint32_t site, const Accessor& who) const;
  std::string line(uint32_t site) const { return program_.line(sites_[site]); }

 private:
  // Of a race, as the byte knows it.
  struct OtherAccess {
    uint32_t block;
    uint16_t thread;
    uint32_t site;
  };

  Region* find(const char* address);
  std::string describe(const char* address);
  void check_bytes(Region& region, size_t offset, uint32_t site, const Accessor& who);
  void add_race(const Region& region, size_t offset, uint32_t site, const Accessor& who,
                const OtherAccess& other);

  DeviceMemory& memory_;
  const Program& program_;
  const Site* sites_;
  Dim3 grid_, block_;
  Report& report_;
  WarpAccesses accesses_;
  std::vector<Region> shared_;
  std::vector<Region*> region_of_site_;  // that it last touched
  std::vector<Region*> touched_;         // global ones
  alignas(16) std::array<char, 16> nowhere_{};
};

}  // namespace torch_lazy::simt
