#include "simt/access_monitor.h"

#include <fmt/format.h>

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace torch_lazy::simt {
namespace {

const char* verb_of(const Site& site) {
  switch (site.kind) {
    case SiteKind::kLoad:
      return "reads";
    case SiteKind::kStore:
      return "writes";
    default:
      return "changes";
  }
}

// "lazy_hsum(float)::of_warps".
std::string demangled(const char* name) {
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, nullptr), std::free);
  return text != nullptr ? text.get() : name;
}

}  // namespace

std::string to_string(Dim3 index) {
  return fmt::format("({}, {}, {})", index.x, index.y, index.z);
}

AccessMonitor::AccessMonitor(DeviceMemory& memory, const Program& program, Dim3 grid, Dim3 block,
                             size_t dynamic_shared_bytes, Report& report)
    : memory_(memory),
      program_(program),
      sites_(program.module().sites),
      grid_(grid),
      block_(block),
      report_(report),
      accesses_(program.module().site_count),
      region_of_site_(program.module().site_count) {
  const Module& module = program.module();
  for (int64_t i = 0; i < module.shared_count; ++i) {
    const SharedVariable& variable = module.shared[i];
    Region region;
    region.name = "shared " + demangled(variable.name);
    region.begin = static_cast<char*>(variable.memory);
    region.bytes = variable.is_dynamic != 0 ? dynamic_shared_bytes : variable.bytes;
    region.shared = true;
    shared_.push_back(std::move(region));
  }
}

void AccessMonitor::begin_block() {
  for (Region& region : shared_) {
    region.initialized.assign(region.bytes, 0);
    region.accesses.assign(region.bytes, {});
    std::memset(region.begin, 0xff, region.bytes);  // NaN
  }
}

std::string AccessMonitor::place(uint32_t site, const Accessor& who) const {
  return fmt::format("{}: thread {} of block {}", program_.line(sites_[site]),
                     to_string(block_.index(who.thread)), to_string(grid_.index(who.block - 1)));
}

// That the address is in, made ready for this launch.
Region* AccessMonitor::find(const char* address) {
  for (Region& region : shared_) {
    if (region.holds(address, 1)) return &region;
  }
  Region* const region = memory_.find(address);
  if (region != nullptr && std::find(touched_.begin(), touched_.end(), region) == touched_.end()) {
    region->accesses.assign(region->bytes, {});
    touched_.push_back(region);
  }
  return region;
}

std::string AccessMonitor::describe(const char* address) {
  for (const Region& region : shared_) {
    const ptrdiff_t offset = address - region.begin;
    if (std::abs(offset) > static_cast<ptrdiff_t>(region.bytes + 4096)) continue;
    return fmt::format("{} + {} of {} bytes", region.name, offset, region.bytes);
  }
  return memory_.describe(address);
}

void* AccessMonitor::access(void* pointer, uint32_t number, const Accessor& who,
                            const Fiber& stack) {
  auto* const address = static_cast<char*>(pointer);
  const Site& site = sites_[number];
  const auto bytes = static_cast<size_t>(site.bytes);
  Region*& region = region_of_site_[number];
  if (region == nullptr || !region->holds(address, bytes)) {
    if (stack.holds(address)) return pointer;
    Region* const found = find(address);
    if (found == nullptr || !found->holds(address, bytes)) {
      report_.add(Defect::kOutOfBounds, number, [&] {
        return fmt::format("out of bounds: {} {} {} bytes at {}", place(number, who), verb_of(site),
                           bytes, describe(address));
      });
      nowhere_.fill(0);
      return nowhere_.data();
    }
    region = found;
  }
  const auto offset = static_cast<size_t>(address - region->begin);
  if (reinterpret_cast<uintptr_t>(address) % site.alignment != 0) {
    report_.add(Defect::kUnaligned, number, [&] {
      return fmt::format("unaligned: {} {} {} bytes at {} + {}, which is not a multiple of {}",
                         place(number, who), verb_of(site), bytes, region->name, offset,
                         site.alignment);
    });
  }
  accesses_.add(number, who.thread % 32, reinterpret_cast<uintptr_t>(address), region->shared);
  check_bytes(*region, offset, number, who);
  return pointer;
}

void AccessMonitor::check_bytes(Region& region, size_t offset, uint32_t number,
                                const Accessor& who) {
  const Site& site = sites_[number];
  const size_t end = offset + static_cast<size_t>(site.bytes);
  for (size_t at = offset; at < end; ++at) {
    if (site.kind != SiteKind::kStore && region.initialized[at] == 0) {
      report_.add(Defect::kUninitialized, number, [&] {
        return fmt::format("uninitialized: {} reads {} + {}, which nothing has written",
                           place(number, who), region.name, at);
      });
      region.initialized[at] = 1;
    }
    ByteAccesses& byte = region.accesses[at];
    const bool atomic = site.kind == SiteKind::kAtomic;
    if (races_with_write(byte, who, atomic)) {
      add_race(region, at, number, who, {byte.write_block, byte.write_thread, byte.write_site});
    }
    if (site.kind == SiteKind::kLoad) {
      enter_read(byte, who, number);
      continue;
    }
    if (races_with_read(byte, who)) {
      add_race(region, at, number, who, {byte.read_block, byte.read_thread, byte.read_site});
    }
    enter_write(byte, who, number, atomic);
    region.initialized[at] = 1;
  }
}

void AccessMonitor::add_race(const Region& region, size_t offset, uint32_t number,
                             const Accessor& who, const OtherAccess& other) {
  report_.add(Defect::kRace, number, [&] {
    const std::string threads =
        other.block == ByteAccesses::kManyBlocks
            ? "threads of several blocks"
            : fmt::format("thread {} of block {}",
                          to_string(block_.index(other.thread & ByteAccesses::kThread)),
                          to_string(grid_.index(other.block - 1)));
    return fmt::format("race: {} {} {} + {}, which {} {} without a barrier between, in {}",
                       place(number, who), verb_of(sites_[number]), region.name, offset, threads,
                       verb_of(sites_[other.site]), program_.line(sites_[other.site]));
  });
}

void AccessMonitor::count_distinct_bytes() {
  for (const Region* region : touched_) {
    for (const ByteAccesses& byte : region->accesses) {
      report_.loads.distinct_bytes += byte.read_block != 0 ? 1 : 0;
      report_.stores.distinct_bytes += byte.write_block != 0 ? 1 : 0;
    }
  }
}

}  // namespace torch_lazy::simt
