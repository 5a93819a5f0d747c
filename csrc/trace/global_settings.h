// The table of the settings that a window depends on, and the memory that they lie in.
#pragma once

#include <ATen/Context.h>
#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace torch_lazy {

struct GlobalSetting {
  std::string name;
  std::function<int32_t(at::Context&)> read;
  std::function<void(at::Context&, int32_t)> write;
};

const std::vector<GlobalSetting>& global_settings();

// Where the settings of at::Context live: what has changed there is told by comparing bytes. The
// context is a singleton and map nodes do not move, so the addresses hold.
struct WatchedMemory {
  static constexpr size_t kFloat32Precisions = 9;

  const unsigned char* first;
  size_t bytes;
  std::array<const at::Float32Precision*, kFloat32Precisions> float32;
};

const WatchedMemory& watched_memory();

constexpr unsigned kFlushDenormalBits = 0x8040;  // MXCSR: flush to zero, denormals are zero

// Those that are set in the calling thread.
inline unsigned flush_denormal_bits() {
#if defined(__x86_64__) || defined(_M_X64)
  return _mm_getcsr() & kFlushDenormalBits;
#else
  return 0;
#endif
}

}  // namespace torch_lazy
