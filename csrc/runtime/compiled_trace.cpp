#include "runtime/compiled_trace.h"

#include <c10/util/Exception.h>

#include <unordered_map>

#include "ir/graph_hash.h"
#include "ir/print.h"
#include "runtime/compile_queue.h"
#include "runtime/config.h"
#include "runtime/debug.h"
#include "runtime/metrics.h"
#include "runtime/warn.h"

namespace torch_lazy {
namespace {

// Global: traces are shared by the recorders of all threads. Grows with the number of distinct
// traces that were seen at least twice.
struct Cache {
  std::mutex mutex;  // guards `traces`
  std::unordered_map<Tape::Hash, std::vector<std::shared_ptr<CompiledTrace>>, TapeHasher> traces;
  size_t operations = 0;  // of all traces
  std::atomic<uint64_t> generation{0};
};

// A trace of a thousand operations takes about 3 MB with its graph. A script that makes more traces
// than this recompiles what it still uses.
constexpr size_t kMostOperations = 200'000;

std::atomic<uint64_t> finished_count{0};

Cache& cache() {
  static Cache* const instance = new Cache;
  return *instance;
}

bool subset(const std::vector<bool>& a, const std::vector<bool>& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] && !(i < b.size() && b[i])) return false;
  return true;
}

void unite(std::vector<bool>& a, const std::vector<bool>& b) {
  if (a.size() < b.size()) a.resize(b.size());
  for (size_t i = 0; i < b.size(); ++i)
    if (b[i]) a[i] = true;
}

std::vector<GraphInput> graph_inputs(const WindowGraph& graph) {
  std::vector<GraphInput> inputs;
  for (const InputMetadata& input : graph.inputs)
    inputs.push_back({input.storage, input.storage_bytes, input.offset, input.cpu});
  return inputs;
}

// Executables by structure of their graph and aliases of its inputs: traces that differ in source
// lines only share one. Only the compile thread comes here.
struct Runnable {
  std::shared_ptr<Executable> executable;
  std::shared_ptr<std::mutex> running;
};

Runnable executable_for(const WindowGraph& window, Backend& backend) {
  struct Compiled {
    std::shared_ptr<torch::jit::Graph> graph;
    std::vector<GraphInput> inputs;
    Runnable runnable;
  };
  const std::shared_ptr<torch::jit::Graph>& graph = window.graph;
  CompileOptions options;
  options.inputs = graph_inputs(window);
  options.verify = config().verify;
  static auto* const executables = new std::unordered_map<uint64_t, std::vector<Compiled>>;
  static uint64_t generation = 0;
  if (const uint64_t now = trace_generation(); now != generation) {
    generation = now;
    executables->clear();
  }
  std::vector<Compiled>& same_hash = (*executables)[hash_graph(*graph).low];
  for (const Compiled& compiled : same_hash)
    if (compiled.inputs == options.inputs && same_graph(*compiled.graph, *graph))
      return compiled.runnable;
  Runnable made{backend.compile(graph, options)->get(), std::make_shared<std::mutex>()};
  increment(metrics().compiles);
  same_hash.push_back({graph, options.inputs, made});
  return made;
}

}  // namespace

CompiledTrace::CompiledTrace(Tape tape, std::vector<bool> live)
    : tape_(std::move(tape)), live_(std::move(live)) {
  outputs_.reserve(tape_.size());
  for (size_t i = 0; i < tape_.size(); ++i) outputs_.push_back(decode_outputs(tape_.outputs(i)));
}

std::shared_ptr<const CompiledTrace::Version> CompiledTrace::version() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return version_;
}

std::shared_ptr<const CompiledTrace::Version> CompiledTrace::version_for(
    const std::shared_ptr<CompiledTrace>& self, const std::vector<bool>& live) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (version_ && subset(live, version_->live)) return version_;
  const bool already_asked = subset(live, live_);
  if (!already_asked && !failed_) {
    unite(live_, live);
    enqueue_compile(self);
  }
  return nullptr;
}

void CompiledTrace::compile(Backend& backend) {
  std::vector<bool> live;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    live = live_;
  }
  std::shared_ptr<const Version> made;
  try {
    auto version = std::make_shared<Version>();
    version->graph = graph_from_tape(tape_, live);
    version->live = std::move(live);
    const Runnable runnable = executable_for(version->graph, backend);
    version->executable = runnable.executable;
    version->running = runnable.running;
    if (config().debug >= kDebugGraphs)
      debug_print("graph " + hash_graph(*version->graph.graph).hex() + "\n" +
                  print_graph(*version->graph.graph));
    made = std::move(version);
  } catch (const std::exception& error) {
    const std::string what = error.what();
    if (metrics().count_fallback("compile failed") == 1)
      warn("backend '" + backend.name() +
           "' could not compile a window, it stays eager: " + what.substr(0, what.find('\n')));
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  failed_ = !made;
  version_ = std::move(made);
  finished_.store(true, std::memory_order_release);
  ++finished_count;
}

std::shared_ptr<CompiledTrace> compiled_trace(const Tape& tape, const std::vector<bool>& live) {
  std::shared_ptr<CompiledTrace> made;
  {
    Cache& all = cache();
    const std::lock_guard<std::mutex> lock(all.mutex);
    for (const auto& trace : all.traces[tape.hash()])
      if (trace->tape().same_words(tape)) {
        // A child of a fork has the traces that were on their way, but not the thread that had
        // them.
        if (!trace->finished() && trace->queue != compile_queue_generation()) {
          trace->queue = compile_queue_generation();
          enqueue_compile(trace);
        }
        return trace;
      }
    if (all.operations > kMostOperations) {
      all.traces.clear();
      all.operations = 0;
      ++all.generation;
    }
    made = std::make_shared<CompiledTrace>(tape.prefix(tape.size()), live);
    made->queue = compile_queue_generation();
    all.operations += tape.size();
    all.traces[tape.hash()].push_back(made);
  }
  enqueue_compile(made);
  return made;
}

uint64_t finished_compiles() {
  return finished_count.load(std::memory_order_acquire);
}

uint64_t trace_generation() {
  return cache().generation.load(std::memory_order_acquire);
}

std::vector<std::shared_ptr<const CompiledTrace::Version>> compiled_versions() {
  Cache& all = cache();
  const std::lock_guard<std::mutex> lock(all.mutex);
  std::vector<std::shared_ptr<const CompiledTrace::Version>> versions;
  for (const auto& entry : all.traces)
    for (const auto& trace : entry.second)
      if (auto version = trace->version()) versions.push_back(std::move(version));
  return versions;
}

}  // namespace torch_lazy
