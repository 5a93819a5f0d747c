// Random numbers by counter: element i of a stream is a function of the stream's key and i alone,
// so threads, kernels and recomputation agree without sharing a state.
//
// Philox2x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC
// 2011; constants and known answers as in the Random123 library). Of the 64-bit key of a stream the
// low half is Philox's key, the high half is mixed into the counter's high half.
#pragma once

#include <array>
#include <cstdint>

namespace torch_lazy {

struct Philox {
  static constexpr uint32_t kMultiplier = 0xD256D193, kWeyl = 0x9E3779B9;
  static constexpr int kRounds = 10;

  static constexpr std::array<uint32_t, 2> block(std::array<uint32_t, 2> counter, uint32_t key) {
    uint64_t low = counter[0], high = counter[1];
    for (int round = 0; round < kRounds; ++round, key += kWeyl) {
      const uint64_t product = uint64_t(uint32_t(low)) * kMultiplier;
      low = (product >> 32) ^ key ^ high;
      high = uint32_t(product);
    }
    return {uint32_t(low), uint32_t(high)};
  }
};

// Element `position` of the stream `key`: uniform in [0, 1), a multiple of 2^-24.
constexpr float philox_uniform(uint64_t key, uint64_t position) {
  const auto high = uint32_t(position >> 32) ^ uint32_t(key >> 32);
  return float(Philox::block({uint32_t(position), high}, uint32_t(key))[0] >> 8) * 0x1p-24f;
}

}  // namespace torch_lazy
