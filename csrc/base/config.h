// Settings as the library reads them. What Python and the environment see of them is one table
// (base/settings.h), where a new one is added too.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/api.h"

namespace torch_lazy {

enum class Defer : uint8_t { kHot, kNever };

// Where memory of lazy tensors comes from: kept for reuse, or from PyTorch's CPU allocator.
enum class AllocatorKind : uint8_t { kCaching, kSystem };

// What Bernoulli draws, dropout's among them, come from: a counter-based generator that kernels can
// compute, or ATen's at the call, with eager's numbers.
enum class RandomNumbers : uint8_t { kPhilox, kEager };

struct Config {
  std::atomic<Defer> defer{Defer::kHot};
  std::atomic<RandomNumbers> rng{RandomNumbers::kPhilox};
  std::atomic<bool> measured_choice{true};  // see runtime/measured_choice.h
  std::atomic<bool> bypass{true};           // see trace/bypass.h
  std::atomic<bool> remember_traces{true};  // see runtime/remembered_traces.h
  std::atomic<bool> accelerator{false};  // torch.accelerator is the device where there is no other
  std::atomic<bool> verify{false};       // run every window both ways and compare
  std::atomic<bool> check_effects{false};  // compare storages before and after each operator
  std::atomic<bool> verify_passes{false};  // check graphs after every pass, loops before printing
  std::atomic<bool> blocking{false};       // wait for the device behind each step of a window
  std::atomic<bool> warn_fallbacks{true};
  std::atomic<bool> perf_map{false};      // kernels are named in /tmp/perf-<pid>.map
  std::atomic<int64_t> debug{0};          // see base/debug.h
  std::atomic<int64_t> compile_delay{0};  // milliseconds at most before a compile, at random
  std::atomic<int64_t> window_operations{16384};
  // Between two looks at a device that runs behind the host, see trace/early_run.h; 0 for none.
  std::atomic<int64_t> early_operations{8};
  // Bytes that the open window keeps alive longer than eager would, at most; 0: by the device's
  // memory, see trace/held_memory.h.
  std::atomic<int64_t> window_bytes{0};
  std::atomic<int64_t> trace_operations{0};  // see runtime/trace_cache.h; 0: by the memory there is
  std::atomic<int64_t> compile_seconds{60};  // see runtime/compile_watch.h; 0 for no limit
  // From this size on, a kernel may rematerialize what another one made: see
  // passes/rematerialize.h. What a core's cache does not hold until it is read, with all that is
  // made in between.
  std::atomic<int64_t> rematerialize_bytes{int64_t(1) << 18};

  // Fixed when the library is loaded:
  std::atomic<AllocatorKind> allocator{AllocatorKind::kCaching};
  std::atomic<int64_t> cache_bytes{int64_t(256) << 20};  // of kernels on the disk; 0 for none
  std::string cache_directory;                           // where they are; empty for nowhere
};

// Read from the environment by the first call; never destroyed. One object for all libraries that
// have a copy of config().
TORCH_LAZY_MODULE_API Config& make_config();

// Global because it is set from Python and read on every recorded operation.
inline Config& config() {
  static Config& instance = make_config();
  return instance;
}

// The backend that compiles windows from now on: "cpu" unless set. Thread-safe. It is set where the
// backend has been found to be there (runtime/select_backend.h), and by the environment.
TORCH_LAZY_MODULE_API std::string backend_name();
void set_backend_name(std::string name);
// Whether it was set, by whomever.
bool is_backend_named();

// The type of device on which lazy tensors live; empty for the backend's own. Thread-safe.
std::string device_name();
void set_device_name(std::string name);

}  // namespace torch_lazy
