// How a change of a global state is noticed.
//
// To call fifty functions for each operation would cost a good part of recording it. So "did
// anything change" is a comparison of the bytes of at::Context that hold the settings: it notices
// too much rather than too little, and only decides whether the table is read again.

#include "trace/global_state.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/AutogradState.h>
#include <c10/core/DefaultDtype.h>

#include <algorithm>
#include <cstring>

#include "trace/global_settings.h"

namespace torch_lazy {
namespace {

GlobalState read_all() {
  GlobalState state;
  for (size_t i = 0; i < global_settings().size(); ++i)
    state.values.at(i) = global_settings()[i].read(at::globalContext());
  return state;
}

void write_differences(const GlobalState& from, const GlobalState& to) {
  for (size_t i = 0; i < global_settings().size(); ++i)
    if (from.values.at(i) != to.values.at(i))
      global_settings()[i].write(at::globalContext(), to.values.at(i));
}

size_t index_of(std::string_view name) {
  const auto found = std::ranges::find(global_settings(), name, &GlobalSetting::name);
  TORCH_INTERNAL_ASSERT(found != global_settings().end(), "no setting ", name);
  return size_t(found - global_settings().begin());
}

// What a state was made from, as found in memory.
struct Snapshot {
  static constexpr size_t kContextBytes = 512;

  int threads = 0;
  unsigned flush = 0;
  at::ScalarType dtype = at::ScalarType::Undefined;
  bool inference = false;
  std::array<at::Float32Precision, WatchedMemory::kFloat32Precisions> float32{};
  std::array<unsigned char, kContextBytes> context{};
};

struct ThreadState {
  Snapshot seen;
  GlobalState state;
  uint32_t version = 0;  // 0 until the first look
};

// Read for every operation. The initial-exec model saves a call of __tls_get_addr; glibc keeps room
// for such variables in libraries loaded late, as long as they are as small as a pointer.
#if defined(__GLIBC__)
[[gnu::tls_model("initial-exec")]]
#endif
constinit thread_local ThreadState* thread_state = nullptr;

[[gnu::noinline]] ThreadState& new_thread_state() {
  static thread_local ThreadState state;  // trivially destructible: usable until the thread is gone
  thread_state = &state;
  return state;
}

ThreadState& this_thread() {
  return thread_state != nullptr ? *thread_state : new_thread_state();
}

// True where this thread's snapshot still holds; otherwise takes a new one.
bool look(ThreadState& state) {
  const WatchedMemory& now = watched_memory();
  Snapshot& seen = state.seen;
  bool same = state.version != 0;
  const int threads = at::get_num_threads();
  const unsigned flush = flush_denormal_bits();
  const at::ScalarType dtype = c10::get_default_dtype_as_scalartype();
  const bool inference = c10::AutogradState::get_tls_state().get_inference_mode();
  same &= seen.threads == threads && seen.flush == flush && seen.dtype == dtype &&
          seen.inference == inference;
  for (size_t i = 0; i < now.float32.size(); ++i) same &= seen.float32[i] == *now.float32[i];
  same = same && std::memcmp(seen.context.data(), now.first, now.bytes) == 0;
  if (same) [[likely]]
    return true;
  seen.threads = threads;
  seen.flush = flush;
  seen.dtype = dtype;
  seen.inference = inference;
  for (size_t i = 0; i < now.float32.size(); ++i) seen.float32[i] = *now.float32[i];
  TORCH_CHECK(now.bytes <= Snapshot::kContextBytes, "torch_lazy: at::Context has ", now.bytes,
              " bytes of settings, expected at most ", Snapshot::kContextBytes,
              "; build torch_lazy for this version of PyTorch");
  std::memcpy(seen.context.data(), now.first, now.bytes);
  return false;
}

[[gnu::noinline]] void renew(ThreadState& thread) {
  const GlobalState state = read_all();
  // Reading may itself settle a setting on its first use (the quantized engine).
  std::memcpy(thread.seen.context.data(), watched_memory().first, watched_memory().bytes);
  if (thread.version == 0 || !(state == thread.state)) {
    thread.state = state;
    if (++thread.version == 0) thread.version = 1;
  }
}

}  // namespace

GlobalState::Versioned GlobalState::current() {
  ThreadState& thread = this_thread();
  if (!look(thread)) renew(thread);
  return {thread.state, thread.version};
}

bool GlobalState::unchanged_in_process() const {
  GlobalState wanted = *this;
  for (const char* const name : {"threads", "flush_denormal", "inference_mode"})
    wanted.set(name, current().state.get(name));
  return wanted.unchanged();
}

int32_t GlobalState::get(std::string_view name) const {
  return values.at(index_of(name));
}

bool GlobalState::deterministic_algorithms() const {
  static const size_t index = index_of("deterministic_algorithms");
  return values.at(index) != 0;
}

void GlobalState::set(std::string_view name, int32_t value) {
  values.at(index_of(name)) = value;
}

ScopedGlobalState::ScopedGlobalState(const GlobalState& wanted) {
  const GlobalState& now = GlobalState::current().state;
  if (wanted == now) return;
  saved_ = now;
  write_differences(*saved_, wanted);
}

ScopedGlobalState::~ScopedGlobalState() {
  if (!saved_) return;
  const GlobalState now = GlobalState::current().state;
  write_differences(now, *saved_);
}

}  // namespace torch_lazy
