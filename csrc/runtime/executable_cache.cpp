#include "runtime/executable_cache.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <unordered_map>
#include <utility>

#include "backend/registry.h"
#include "base/config.h"
#include "base/fork.h"
#include "base/metrics.h"
#include "runtime/choose_executable.h"

namespace torch_lazy {
namespace {

using MakeGraph = std::function<std::shared_ptr<torch::jit::Graph>()>;

struct Compiled {
  std::string backend;
  CompileOptions options;
  std::shared_ptr<const MakeGraph> graph;
  Runnable runnable;
};

// Global: one cache for the traces of all threads.
struct ExecutableCache {
  ForkSafeMutex mutex{LockOrder::kExecutables};  // guards `by_hash`
  std::unordered_map<uint64_t, std::vector<Compiled>> by_hash;
};

ExecutableCache& cached_executables() {
  static ExecutableCache* const instance = new ExecutableCache;
  return *instance;
}

// Made when the library is loaded: what is made during a fork is not covered by it.
[[maybe_unused]] ExecutableCache& executable_cache_made_at_load = cached_executables();

// Copies, so that graphs are made and compared without the lock. They are few: a 64-bit hash is
// equal.
std::vector<Compiled> compiled_with_hash(uint64_t hash) {
  const std::lock_guard<std::mutex> lock(cached_executables().mutex);
  const auto found = cached_executables().by_hash.find(hash);
  return found == cached_executables().by_hash.end() ? std::vector<Compiled>() : found->second;
}

std::vector<GraphInput> graph_inputs(const WindowGraph& graph) {
  std::vector<GraphInput> inputs;
  for (const WindowInput& input : graph.inputs)
    inputs.push_back({input.storage, input.storage_bytes, input.offset, input.cpu});
  // Each with a storage of its own, by a number that no other input has.
  for (size_t i = 0; i < graph.numbers.size(); ++i)
    inputs.push_back({uint32_t(UINT32_MAX - i), int64_t(sizeof(double)), 0, true});
  return inputs;
}

}  // namespace

Runnable executable_for(const WindowGraph& window, const TraceConditions& conditions,
                        std::function<std::shared_ptr<torch::jit::Graph>()> make_graph) {
  CompileOptions options;
  options.inputs = graph_inputs(window);
  options.device = conditions.device;
  options.deterministic = conditions.deterministic;
  options.verify = config().verify;
  const std::string backend = backend_name();
  const GraphHash hash = hash_graph(*window.graph);
  for (const Compiled& compiled : compiled_with_hash(hash.low))
    if (compiled.backend == backend && compiled.options == options &&
        same_graph(*(*compiled.graph)(), *window.graph))
      return compiled.runnable;
  const auto graph = std::make_shared<const MakeGraph>(std::move(make_graph));
  // What makes the graph owns a trace, and the trace owns the executable.
  const MakeGraph make_again = [remembered = std::weak_ptr(graph)] {
    const auto make = remembered.lock();
    TORCH_CHECK(make, "the window that was to be compiled again is forgotten");
    return (*make)();
  };
  Runnable made{choose_executable(backend, {window.graph, hash, make_again}, options),
                std::make_shared<ExecutionLock>(), hash};
  increment(metrics().compiles);
  const std::lock_guard<std::mutex> lock(cached_executables().mutex);
  cached_executables().by_hash[hash.low].push_back({backend, std::move(options), graph, made});
  return made;
}

void forget_executables(const std::unordered_set<const Executable*>& executables) {
  std::vector<Compiled> dropped;  // destroyed without the lock
  const std::lock_guard<std::mutex> lock(cached_executables().mutex);
  for (auto& [hash, same_hash] : cached_executables().by_hash) {
    const auto forgotten =
        std::partition(same_hash.begin(), same_hash.end(), [&](const Compiled& compiled) {
          return !executables.contains(compiled.runnable.executable.get());
        });
    std::move(forgotten, same_hash.end(), std::back_inserter(dropped));
    same_hash.erase(forgotten, same_hash.end());
  }
  std::erase_if(cached_executables().by_hash,
                [](const auto& entry) { return entry.second.empty(); });
}

void clear_executables() {
  std::unordered_map<uint64_t, std::vector<Compiled>> dropped;  // destroyed without the lock
  const std::lock_guard<std::mutex> lock(cached_executables().mutex);
  dropped.swap(cached_executables().by_hash);
}

}  // namespace torch_lazy
