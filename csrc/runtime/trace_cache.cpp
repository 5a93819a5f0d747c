#include "runtime/trace_cache.h"

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/fork.h"
#include "runtime/compile_policy.h"
#include "runtime/compile_queue.h"
#include "runtime/executable_cache.h"

namespace torch_lazy {
namespace {

struct CachedTrace {
  std::shared_ptr<CompiledTrace> trace;
  std::chrono::nanoseconds spent{0};  // in its recordings, see compiling_pays()
  bool queued = false;
};

using Traces = std::unordered_map<Tape::Hash, std::vector<CachedTrace>, TapeHasher>;

// Global: traces are shared by the recorders of all threads.
struct Cache {
  ForkSafeMutex mutex{LockOrder::kTraceCache};  // guards what is below
  Traces traces;
  size_t operations = 0;                // of all traces
  std::atomic<uint64_t> generation{0};  // read without the lock
};

// A trace of a thousand operations takes about 1 MB with its plan. A script that makes more traces
// than this recompiles what it still uses.
constexpr size_t kMostOperations = 200'000;

Cache& cache() {
  static Cache* const instance = new Cache;
  return *instance;
}

// Made when the library is loaded: what is made during a fork is not covered by it.
[[maybe_unused]] Cache& made_at_load = cache();

// The cache's lock is held.
CachedTrace* find(const Tape& tape, const DynamicScalars& dynamic_scalars,
                  const TraceConditions& conditions) {
  for (CachedTrace& cached : cache().traces[tape.hash()])
    if (cached.trace->dynamic_scalars() == dynamic_scalars &&
        cached.trace->conditions() == conditions && cached.trace->tape().same_words(tape))
      return &cached;
  return nullptr;
}

// The cache's lock is held. Returns what was there.
Traces clear() {
  Cache& all = cache();
  clear_executables();
  all.operations = 0;
  ++all.generation;
  return std::exchange(all.traces, {});
}

// The cache's lock is held.
CachedTrace& add(const Tape& tape, const DynamicScalars& dynamic_scalars,
                 const std::vector<bool>& live, const TraceConditions& conditions) {
  Cache& all = cache();
  if (all.operations > kMostOperations) clear();
  all.operations += tape.size();
  return all.traces[tape.hash()].emplace_back(CachedTrace{std::make_shared<CompiledTrace>(
      tape.prefix(tape.size()), dynamic_scalars, live, conditions)});
}

// The cache's lock is held.
void queue(CachedTrace& cached) {
  cached.queued = true;
  enqueue_compile(cached.trace);
}

}  // namespace

std::shared_ptr<CompiledTrace> compiled_trace(const Tape& recorded,
                                              const DynamicScalars& dynamic_scalars,
                                              const std::vector<bool>& live,
                                              const TraceConditions& conditions,
                                              std::chrono::nanoseconds spent) {
  Tape masked;  // left empty without dynamic_scalars
  if (!dynamic_scalars.empty()) masked = recorded.prefix(recorded.size());
  for (const DynamicScalar& number : dynamic_scalars) masked.clear_word(number.word);
  const Tape& tape = dynamic_scalars.empty() ? recorded : masked;
  const std::lock_guard<std::mutex> lock(cache().mutex);
  CachedTrace* const found = find(tape, dynamic_scalars, conditions);
  CachedTrace& cached = found ? *found : add(tape, dynamic_scalars, live, conditions);
  if (cached.trace->finished()) return cached.trace;
  cached.spent += spent;
  if (cached.queued)
    resume_compiles();
  else if (compiling_pays(tape.size(), cached.spent, has_one_core()))
    queue(cached);
  return cached.trace;
}

void queue_all_compiles() {
  const std::lock_guard<std::mutex> lock(cache().mutex);
  for (auto& [hash, same_hash] : cache().traces)
    for (CachedTrace& cached : same_hash)
      if (!cached.queued) queue(cached);
}

void forget_traces() {
  Traces dropped;  // destroyed without the lock: what backends made is among it
  const std::lock_guard<std::mutex> lock(cache().mutex);
  dropped = clear();
}

uint64_t trace_generation() {
  return cache().generation.load(std::memory_order_acquire);
}

std::vector<std::shared_ptr<torch::jit::Graph>> compiled_graphs() {
  std::vector<std::shared_ptr<const CompiledTrace>> traces;
  {
    const std::lock_guard<std::mutex> lock(cache().mutex);
    for (const auto& [hash, same_hash] : cache().traces)
      for (const CachedTrace& cached : same_hash) traces.push_back(cached.trace);
  }
  std::vector<std::shared_ptr<torch::jit::Graph>> graphs;
  for (const auto& trace : traces)
    if (const auto version = trace->version()) graphs.push_back(trace->graph_of(version->live));
  return graphs;
}

}  // namespace torch_lazy
