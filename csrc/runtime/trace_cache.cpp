#include "runtime/trace_cache.h"

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
#include "runtime/memory_limit.h"

namespace torch_lazy {
namespace {

struct CachedTrace {
  std::shared_ptr<CompiledTrace> trace;
  Tape::Hash structure;
  TraceUse use;
};

using TracesByHash = std::unordered_map<Tape::Hash, std::vector<CachedTrace>, TapeHasher>;

// Of one owner. Times are by the clock.
struct Traces {
  TracesByHash by_hash;
  size_t operations = 0;  // of all of them
  TraceGeneration generation;
  std::shared_ptr<TraceClock> clock = std::make_shared<TraceClock>();
  // Since then it is watched what is used, and what is turned away by hash; looked at from the
  // other time on.
  uint64_t watched_since = 0, next_look = 0;
  std::unordered_set<uint64_t> turned_away;
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
[[maybe_unused]] Cache& trace_cache_made_at_load = cache();

size_t most_operations() {
  if (const int64_t set = config().trace_operations.load(std::memory_order_relaxed))
    return size_t(set);
  constexpr size_t kLeast = 200'000, kMost = 4'000'000;
  constexpr size_t kBytesOfAnOperation = 512, kShareOfMemory = 64;
  static const size_t by_memory = memory_limit() / kShareOfMemory / kBytesOfAnOperation;
  return std::clamp(by_memory, kLeast, kMost);
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

// A number that turns out to change, or two that turn out to differ, make another trace of the
// structure.
bool know_more(const DynamicScalars& a, const DynamicScalars& b) {
  const auto numbers = [](const DynamicScalars& all) {
    return std::ranges::count_if(
        all, [](const DynamicScalar& number) { return number.word == number.first; });
  };
  return std::pair(a.size(), numbers(a)) > std::pair(b.size(), numbers(b));
}

void publish(TraceOwner owner, TraceGeneration generation) {
  if (owner) return;
  cache().emptied = generation.emptied;
  cache().dropped = generation.dropped;
}

void watch(Traces& traces) {
  traces.watched_since = traces.next_look = traces.clock->now();
  traces.turned_away.clear();
}

// Returns what was there, to be destroyed without the lock: what backends made is among it.
TracesByHash clear(TraceOwner owner, Traces& traces) {
  traces.operations = 0;
  watch(traces);
  ++traces.generation.emptied;
  publish(owner, traces.generation);
  return std::exchange(traces.by_hash, {});
}

using Executables = std::unordered_set<const Executable*>;

void add_executable(const CachedTrace& cached, Executables& executables) {
  if (const auto version = cached.trace->version()) executables.insert(version->executable.get());
}

// Those of traces that have left, but for those that others share.
void forget_executables_of(c10::ArrayRef<CachedTrace> dropped) {
  Executables unused, used;
  for (const CachedTrace& cached : dropped) add_executable(cached, unused);
  for (const auto& [owner, traces] : cache().by_owner)
    for (const auto& [hash, same_hash] : traces.by_hash)
      for (const CachedTrace& cached : same_hash) add_executable(cached, used);
  std::erase_if(unused, [&](const Executable* executable) { return used.contains(executable); });
  forget_executables(unused);
}

// Takes out what was not used since it is watched. Returns it, as clear() does.
std::vector<CachedTrace> drop_unused(TraceOwner owner, Traces& traces) {
  std::vector<CachedTrace> dropped;
  for (auto& [hash, same_hash] : traces.by_hash) {
    const auto unused = std::partition(
        same_hash.begin(), same_hash.end(),
        [&](const CachedTrace& cached) { return cached.trace->last_use() > traces.watched_since; });
    std::move(unused, same_hash.end(), std::back_inserter(dropped));
    same_hash.erase(unused, same_hash.end());
  }
  if (dropped.empty()) return dropped;
  std::erase_if(traces.by_hash, [](const auto& entry) { return entry.second.empty(); });
  for (const CachedTrace& cached : dropped) {
    cached.trace->drop();
    traces.operations -= cached.trace->tape().size();
  }
  ++traces.generation.dropped;
  publish(owner, traces.generation);
  forget_executables_of(dropped);
  return dropped;
}

// A trace comes for which there is no room. Once what the script does now, kept or turned away, has
// come round so many times, what was not used meanwhile makes room, and is returned. (Of windows in
// random order one in three thousand stays away for eight rounds.)
std::vector<CachedTrace> make_room(TraceOwner owner, Traces& traces, const Tape& tape) {
  constexpr uint64_t kRounds = 8;
  // A script whose windows come twice and never again would else never come round.
  constexpr size_t kMostTurnedAway = 4096;
  const uint64_t now = traces.clock->tick();
  if (traces.turned_away.size() < kMostTurnedAway) traces.turned_away.insert(tape.hash().low);
  if (now < traces.next_look) return {};
  uint64_t used = traces.turned_away.size();
  for (const auto& [hash, same_hash] : traces.by_hash)
    for (const CachedTrace& cached : same_hash)
      used += uint64_t(cached.trace->last_use() > traces.watched_since);
  traces.next_look = traces.watched_since + kRounds * used;
  if (now < traces.next_look) return {};
  std::vector<CachedTrace> dropped = drop_unused(owner, traces);
  watch(traces);
  return dropped;
}

}  // namespace

std::shared_ptr<CompiledTrace> compiled_trace(TraceOwner owner, const RepeatedRecording& recording,
                                              const TraceConditions& conditions) {
  const DynamicScalars& dynamic_scalars = recording.dynamic_scalars;
  Tape masked;  // left empty without dynamic_scalars
  if (!dynamic_scalars.empty()) masked = recording.tape.prefix(recording.tape.size());
  for (const DynamicScalar& number : dynamic_scalars) masked.clear_word(number.word);
  const Tape& tape = dynamic_scalars.empty() ? recording.tape : masked;
  std::vector<CachedTrace> dropped;  // destroyed without the cache's lock
  const std::lock_guard<std::mutex> lock(cache().mutex);
  Traces& traces = cache().by_owner[owner];
  CachedTrace* cached = find(traces, tape, dynamic_scalars, conditions);
  if (!cached) {
    if (traces.operations >= most_operations()) dropped = make_room(owner, traces, tape);
    if (traces.operations >= most_operations()) return nullptr;
    traces.operations += tape.size();
    cached = &traces.by_hash[tape.hash()].emplace_back(
        CachedTrace{std::make_shared<CompiledTrace>(tape.prefix(tape.size()), dynamic_scalars,
                                                    recording.live, conditions, traces.clock),
                    recording.structure});
    if (const auto known = owner ? std::nullopt : remembered_trace(recording.structure))
      cached->use.spent_before = known->runs * known->recorded;
  }
  cached->trace->note_use();
  if (cached->trace->finished()) return cached->trace;
  ++cached->use.recordings;
  cached->use.last = recording.spent;
  cached->use.spent += recording.spent;
  CompiledTrace& trace = *cached->trace;
  if (trace.queued() != CompileWhen::kNot) resume_compiles();
  if (trace.queued() != CompileWhen::kInTurn) {
    const CompileWhen when =
        owner ? CompileWhen::kInTurn : when_compiling_pays(trace.compile_size(), cached->use);
    if (when != CompileWhen::kNot) trace.queue(when);
  }
  return cached->trace;
}

RememberedTraces traces_to_remember(int64_t least_runs) {
  RememberedTraces ran;
  const std::lock_guard<std::mutex> lock(cache().mutex);
  for (const auto& [hash, same_hash] : cache().by_owner[nullptr].by_hash)
    for (const auto& [trace, structure, use] : same_hash) {
      const bool was_remembered = use.spent_before > std::chrono::nanoseconds(0);
      if (trace->runs() < least_runs && !(was_remembered && trace->finished())) continue;
      RememberedTrace& all = ran[structure];
      const auto recorded = use.spent / std::max<int64_t>(use.recordings, 1);
      all.recorded = all.runs == 0 ? recorded : std::min(all.recorded, recorded);
      all.runs += trace->runs();
      if (know_more(trace->dynamic_scalars(), all.dynamic_scalars))
        all.dynamic_scalars = trace->dynamic_scalars();
    }
  return ran;
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
  clear_executables();
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
