#include "runtime/trace_cache.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/config.h"
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
  size_t count = 0, operations = 0;  // of all of them
  TraceGeneration generation;
  std::shared_ptr<TraceClock> clock = std::make_shared<TraceClock>();
  uint64_t full_until = 0;  // by the clock: before that there is nothing to be dropped
};

// Global: most traces are shared by the recorders of all threads.
struct Cache {
  ForkSafeMutex mutex{LockOrder::kTraceCache};  // guards what is below
  std::unordered_map<TraceOwner, Traces> by_owner;
  // The generation of the shared traces, read without the lock.
  std::atomic<uint64_t> emptied{0}, dropped{0};
};

Cache& cache() {
  static Cache* const instance = new Cache;
  return *instance;
}

// Made when the library is loaded: what is made during a fork is not covered by it.
[[maybe_unused]] Cache& made_at_load = cache();

size_t most_operations() {
  if (const int64_t set = config().trace_operations.load(std::memory_order_relaxed))
    return size_t(set);
  constexpr size_t kLeast = 200'000, kBytesOfAnOperation = 1024, kShareOfMemory = 32;
  static const size_t memory = size_t(sysconf(_SC_PHYS_PAGES)) * size_t(sysconf(_SC_PAGESIZE));
  return std::max(kLeast, memory / kShareOfMemory / kBytesOfAnOperation);
}

// The cache's lock is held here and in what follows.
CachedTrace* find(Traces& traces, const Tape& tape, const DynamicScalars& dynamic_scalars,
                  const TraceConditions& conditions) {
  const auto same_hash = traces.by_hash.find(tape.hash());
  if (same_hash == traces.by_hash.end()) return nullptr;
  for (CachedTrace& cached : same_hash->second)
    if (cached.trace->dynamic_scalars() == dynamic_scalars &&
        cached.trace->conditions() == conditions && cached.trace->tape().same_words(tape))
      return &cached;
  return nullptr;
}

void publish(TraceOwner owner, TraceGeneration generation) {
  if (owner) return;
  cache().emptied = generation.emptied;
  cache().dropped = generation.dropped;
}

// Returns what was there, to be destroyed without the lock: what backends made is among it.
TracesByHash clear(TraceOwner owner, Traces& traces) {
  traces.count = traces.operations = 0;
  traces.full_until = 0;
  ++traces.generation.emptied;
  publish(owner, traces.generation);
  return std::exchange(traces.by_hash, {});
}

void forget_unused_executables() {
  std::unordered_set<const Executable*> used;
  for (const auto& [owner, traces] : cache().by_owner)
    for (const auto& [hash, same_hash] : traces.by_hash)
      for (const CachedTrace& cached : same_hash)
        if (const auto version = cached.trace->version()) used.insert(version->executable.get());
  keep_executables(used);
}

// Returns what has left, as clear() does.
std::vector<CachedTrace> drop_unused(TraceOwner owner, Traces& traces) {
  const uint64_t now = traces.clock->now();
  const size_t count = traces.count;
  std::vector<CachedTrace> dropped;
  for (auto& [hash, same_hash] : traces.by_hash) {
    const auto unused = std::ranges::partition(same_hash, [&](const CachedTrace& cached) {
      return is_in_use(cached.trace->last_use(), now, count);
    });
    std::ranges::move(unused, std::back_inserter(dropped));
    same_hash.erase(unused.begin(), unused.end());
  }
  traces.full_until = now + count;
  if (dropped.empty()) return dropped;
  std::erase_if(traces.by_hash, [](const auto& entry) { return entry.second.empty(); });
  for (const CachedTrace& cached : dropped) {
    cached.trace->drop();
    --traces.count;
    traces.operations -= cached.trace->tape().size();
  }
  ++traces.generation.dropped;
  publish(owner, traces.generation);
  forget_unused_executables();
  return dropped;
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
  std::vector<CachedTrace> dropped;  // destroyed without the lock
  const std::lock_guard<std::mutex> lock(cache().mutex);
  Traces& traces = cache().by_owner[owner];
  CachedTrace* cached = find(traces, tape, dynamic_scalars, conditions);
  if (!cached) {
    if (traces.operations >= most_operations() && traces.clock->now() >= traces.full_until)
      dropped = drop_unused(owner, traces);
    if (traces.operations >= most_operations()) {
      traces.clock->tick();
      return nullptr;
    }
    ++traces.count;
    traces.operations += tape.size();
    cached = &traces.by_hash[tape.hash()].emplace_back(CachedTrace{std::make_shared<CompiledTrace>(
        tape.prefix(tape.size()), dynamic_scalars, live, conditions, traces.clock)});
  }
  cached->trace->note_use();
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
  std::vector<TracesByHash> dropped;  // destroyed without the lock
  const std::lock_guard<std::mutex> lock(cache().mutex);
  for (auto& [owner, traces] : cache().by_owner) dropped.push_back(clear(owner, traces));
  forget_unused_executables();
}

TraceGeneration trace_generation(TraceOwner owner) {
  if (!owner)
    return {cache().emptied.load(std::memory_order_acquire),
            cache().dropped.load(std::memory_order_acquire)};
  const std::lock_guard<std::mutex> lock(cache().mutex);
  const auto found = cache().by_owner.find(owner);
  return found == cache().by_owner.end() ? TraceGeneration() : found->second.generation;
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
