// Settings, each with an environment variable TORCH_LAZY_* read once when the library is loaded.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace torch_lazy {

// kAlways, for backends without eager kernels, needs shape functions; it is not accepted yet.
enum class Defer : uint8_t { kHot, kAlways, kNever };

// Where memory of lazy tensors comes from: kept for reuse, or from PyTorch's CPU allocator.
enum class AllocatorKind : uint8_t { kCaching, kSystem };

// What Bernoulli draws, dropout's among them, come from: a counter-based generator that kernels can
// compute, or ATen's at the call, with eager's numbers.
enum class RandomNumbers : uint8_t { kPhilox, kEager };

struct Config {
  std::atomic<Defer> defer{Defer::kHot};
  std::atomic<bool> verify{false};         // run every window both ways and compare
  std::atomic<bool> check_effects{false};  // compare storages before and after each operator
  std::atomic<bool> verify_passes{false};  // check graphs after every pass, loops before printing
  std::atomic<bool> warn_fallbacks{true};
  std::atomic<bool> perf_map{false};  // kernels are named in /tmp/perf-<pid>.map
  std::atomic<int> debug{0};          // 1 windows, 2 graphs, 3 passes, 4 kernels, 5 operations
  std::atomic<int64_t> window_operations{16384};
  // Bytes that the open window keeps alive longer than eager would.
  std::atomic<int64_t> window_bytes{int64_t(1) << 30};
  // From this size on, a kernel may rematerialize what another one made: see
  // passes/rematerialize.h. What a core's cache does not hold until it is read, with all that is
  // made in between.
  std::atomic<int64_t> rematerialize_bytes{int64_t(1) << 18};
  std::atomic<RandomNumbers> rng{RandomNumbers::kPhilox};
  // Fixed when the library is loaded.
  AllocatorKind allocator = AllocatorKind::kCaching;
  std::string cache_directory;               // where compiled kernels are kept; empty for nowhere
  int64_t cache_bytes = int64_t(256) << 20;  // most of them on the disk; 0 for none
};

// Read from the environment; never destroyed.
Config& make_config();

// Global because it is set from Python and read on every recorded operation.
inline Config& config() {
  static Config& instance = make_config();
  return instance;
}

// The registered backend that compiles windows from now on: "cpu" unless set. Thread-safe.
std::string backend_name();
// What a backend is called now: "interpreter" is an old name of "reference", of which the user is
// warned once.
std::string current_backend_name(std::string name);
void set_backend_name(std::string name);

}  // namespace torch_lazy
