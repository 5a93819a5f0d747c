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
  // Recordings, and the time in them; see when_compiling_pays().
  int64_t recordings = 0;
  std::chrono::nanoseconds spent{0};
};

using TracesByHash = std::unordered_map<Tape::Hash, std::vector<CachedTrace>, TapeHasher>;

// Of one owner.
struct Traces {
  TracesByHash by_hash;
  size_t operations = 0;  // of all of them
  uint64_t generation = 0;
};

// Global: most traces are shared by the recorders of all threads.
struct Cache {
  ForkSafeMutex mutex{LockOrder::kTraceCache};  // guards what is below
  std::unordered_map<TraceOwner, Traces> by_owner;
  std::atomic<uint64_t> shared_generation{0};  // read without the lock
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
CachedTrace* find(Traces& traces, const Tape& tape, const DynamicScalars& dynamic_scalars,
                  const TraceConditions& conditions) {
  for (CachedTrace& cached : traces.by_hash[tape.hash()])
    if (cached.trace->dynamic_scalars() == dynamic_scalars &&
        cached.trace->conditions() == conditions && cached.trace->tape().same_words(tape))
      return &cached;
  return nullptr;
}

// The cache's lock is held. Returns what was there.
TracesByHash clear(TraceOwner owner, Traces& traces) {
  clear_executables();
  traces.operations = 0;
  ++traces.generation;
  if (!owner) cache().shared_generation = traces.generation;
  return std::exchange(traces.by_hash, {});
}

// The cache's lock is held.
void make_room(TraceOwner owner, Traces& traces) {
  if (traces.operations > kMostOperations) clear(owner, traces);
}

}  // namespace

std::shared_ptr<CompiledTrace> compiled_trace(TraceOwner owner, const Tape& recorded,
                                              const DynamicScalars& dynamic_scalars,
                                              const std::vector<bool>& live,
                                              const TraceConditions& conditions,
                                              std::chrono::nanoseconds spent) {
  Tape masked;  // left empty without dynamic_scalars
  if (!dynamic_scalars.empty()) masked = recorded.prefix(recorded.size());
  for (const DynamicScalar& number : dynamic_scalars) masked.clear_word(number.word);
  const Tape& tape = dynamic_scalars.empty() ? recorded : masked;
  const std::lock_guard<std::mutex> lock(cache().mutex);
  Traces& traces = cache().by_owner[owner];
  CachedTrace* cached = find(traces, tape, dynamic_scalars, conditions);
  if (!cached) {
    make_room(owner, traces);
    traces.operations += tape.size();
    cached = &traces.by_hash[tape.hash()].emplace_back(CachedTrace{std::make_shared<CompiledTrace>(
        tape.prefix(tape.size()), dynamic_scalars, live, conditions)});
  }
  if (cached->trace->finished()) return cached->trace;
  ++cached->recordings;
  cached->spent += spent;
  CompiledTrace& trace = *cached->trace;
  if (trace.queued() != CompileWhen::kNot) resume_compiles();
  if (trace.queued() != CompileWhen::kInTurn) {
    const CompileWhen when =
        owner ? CompileWhen::kInTurn
              : when_compiling_pays(trace.compile_size(), cached->recordings, cached->spent);
    if (when != CompileWhen::kNot) trace.queue(when);
  }
  return cached->trace;
}

void queue_all_compiles() {
  const std::lock_guard<std::mutex> lock(cache().mutex);
  for (auto& [owner, traces] : cache().by_owner)
    for (auto& [hash, same_hash] : traces.by_hash)
      for (CachedTrace& cached : same_hash)
        if (!cached.trace->finished()) cached.trace->queue(CompileWhen::kInTurn);
}

void forget_traces() {
  forget_compiled();
  std::vector<TracesByHash> dropped;  // destroyed without the lock: what backends made is among it
  const std::lock_guard<std::mutex> lock(cache().mutex);
  for (auto& [owner, traces] : cache().by_owner) dropped.push_back(clear(owner, traces));
}

uint64_t trace_generation(TraceOwner owner) {
  if (!owner) return cache().shared_generation.load(std::memory_order_acquire);
  const std::lock_guard<std::mutex> lock(cache().mutex);
  const auto found = cache().by_owner.find(owner);
  return found == cache().by_owner.end() ? 0 : found->second.generation;
}

void drop_traces(TraceOwner owner) {
  Traces dropped;  // destroyed without the lock
  const std::lock_guard<std::mutex> lock(cache().mutex);
  if (const auto found = cache().by_owner.find(owner); found != cache().by_owner.end()) {
    dropped = std::move(found->second);
    cache().by_owner.erase(found);
  }
}

std::vector<std::shared_ptr<torch::jit::Graph>> compiled_graphs() {
  std::vector<std::shared_ptr<const CompiledTrace>> traces;
  {
    const std::lock_guard<std::mutex> lock(cache().mutex);
    for (const auto& [owner, owned] : cache().by_owner)
      for (const auto& [hash, same_hash] : owned.by_hash)
        for (const CachedTrace& cached : same_hash) traces.push_back(cached.trace);
  }
  std::vector<std::shared_ptr<torch::jit::Graph>> graphs;
  for (const auto& trace : traces)
    if (const auto version = trace->version()) graphs.push_back(trace->graph_of(version->live));
  return graphs;
}

}  // namespace torch_lazy
