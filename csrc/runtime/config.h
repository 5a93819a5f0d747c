// Settings, each with an environment variable TORCH_LAZY_* read once when the library is loaded.
#pragma once

#include <atomic>
#include <cstdint>

namespace torch_lazy {

// kAlways, for backends without eager kernels, needs shape functions; it is not accepted yet.
enum class Defer : uint8_t { kHot, kAlways, kNever };

struct Config {
  std::atomic<Defer> defer{Defer::kHot};
  std::atomic<bool> verify{false};         // run every window both ways and compare
  std::atomic<bool> check_effects{false};  // compare storages before and after each operator
  std::atomic<bool> warn_fallbacks{true};
  std::atomic<int> debug{0};  // 1 windows, 2 graphs, 3 passes, 4 kernels, 5 operations
  std::atomic<int64_t> window_operations{16384};
  // Bytes that the open window keeps alive longer than eager would.
  std::atomic<int64_t> window_bytes{int64_t(1) << 30};
};

// Read from the environment; never destroyed.
Config& make_config();

// Global because it is set from Python and read on every recorded operation.
inline Config& config() {
  static Config& instance = make_config();
  return instance;
}

}  // namespace torch_lazy
