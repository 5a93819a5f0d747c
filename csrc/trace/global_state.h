// Everything besides its arguments that changes what an operation computes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace torch_lazy {

// The settings of PyTorch and of the calling thread that kernels look at, as numbers, in the order
// of one table (global_state.cpp). Grad mode and autocast are not here: both act above the
// recorder, and what they do is recorded as operations.
struct GlobalState {
  static constexpr size_t kMostSettings = 64;

  std::array<int32_t, kMostSettings> values{};  // 0 past the end of the table

  struct Versioned;
  // The calling thread's state now. Cheap enough for every operation: what it was made from is
  // compared with what is there now, and only a difference makes a new one.
  static Versioned current();

  // Whether this is still the calling thread's state.
  bool unchanged() const;
  // The same but for what is a thread's own: its number of threads, denormals and inference mode.
  bool unchanged_in_process() const;

  // By the names of the table.
  int32_t get(std::string_view name) const;
  void set(std::string_view name, int32_t value);
  bool deterministic_algorithms() const;

  bool operator==(const GlobalState&) const = default;
};

struct GlobalState::Versioned {
  const GlobalState& state;  // thread-local, valid until the next look on this thread
  // Another whenever a look finds another state than the look before it on this thread. Comparing
  // it is the quickest way to see that nothing changed since. Never 0.
  uint32_t version;
};

inline bool GlobalState::unchanged() const {
  return *this == current().state;
}

// Puts a global state in force for a scope: writes only what differs, then and when the scope ends.
// Where nothing differs it looks no more: what happens inside then stays.
// Thread count and flush-denormal are the calling thread's; the rest is global to the process, as
// it is in PyTorch. Inference mode is not applied: it is the caller's to enter.
class ScopedGlobalState {
 public:
  explicit ScopedGlobalState(const GlobalState& wanted);
  ~ScopedGlobalState();
  ScopedGlobalState(const ScopedGlobalState&) = delete;
  ScopedGlobalState& operator=(const ScopedGlobalState&) = delete;

 private:
  std::optional<GlobalState> saved_;
};

}  // namespace torch_lazy
