#include "runtime/compiled_trace.h"

#include <c10/util/Exception.h>

#include <unordered_map>

#include "backend/registry.h"
#include "base/config.h"
#include "base/debug.h"
#include "base/metrics.h"
#include "base/pass_times.h"
#include "base/warn.h"
#include "ir/graph_hash.h"
#include "ir/print.h"
#include "runtime/compile_policy.h"
#include "runtime/compile_queue.h"

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

// A trace of a thousand operations takes about 1 MB with its plan. A script that makes more traces
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
  // Each with a storage of its own, by a number that no other input has.
  for (size_t i = 0; i < graph.numbers.size(); ++i)
    inputs.push_back({uint32_t(UINT32_MAX - i), int64_t(sizeof(double)), 0, true});
  return inputs;
}

// Runs what the chosen backend does not support: node by node, through ATen.
constexpr const char* kReferenceBackend = "reference";

std::string first_line(const std::exception& error) {
  const std::string what = error.what();
  return what.substr(0, what.find('\n'));
}

std::shared_ptr<Executable> compile_or_fall_back(const std::shared_ptr<torch::jit::Graph>& graph,
                                                 const CompileOptions& options) {
  const std::string name = backend_name();
  try {
    return backend_by_name(name).compile(graph, options);
  } catch (const std::exception& error) {
    if (name == kReferenceBackend) throw;
    if (increment(metrics().fallbacks["window not compiled"]) == 1 && config().warn_fallbacks)
      warn_in_background(
          "backend '" + name +
          "' does not compile a window, which runs node by node instead: " + first_line(error));
    else if (config().debug >= kDebugGraphs)
      debug_print("not compiled: " + first_line(error));
    return backend_by_name(kReferenceBackend).compile(graph, options);
  }
}

// Executables by structure of their graph and compile options: traces that differ in source
// lines only share one. Only the compile thread comes here.
struct Runnable {
  std::shared_ptr<Executable> executable;
  std::shared_ptr<std::mutex> running;
};

Runnable executable_for(const CompiledTrace& trace, const WindowGraph& window,
                        const std::vector<bool>& live, bool deterministic) {
  struct Compiled {
    std::string backend;
    std::shared_ptr<const CompiledTrace> trace;  // whose graph_of(live) it was made of
    std::vector<bool> live;
    CompileOptions options;
    Runnable runnable;
  };
  const std::shared_ptr<torch::jit::Graph>& graph = window.graph;
  CompileOptions options;
  options.inputs = graph_inputs(window);
  options.deterministic = deterministic;
  options.verify = config().verify;
  static auto* const executables = new std::unordered_map<uint64_t, std::vector<Compiled>>;
  static uint64_t generation = 0;
  const std::string backend = backend_name();
  if (const uint64_t now = trace_generation(); now != generation) {
    generation = now;
    executables->clear();
  }
  std::vector<Compiled>& same_hash = (*executables)[hash_graph(*graph).low];
  for (const Compiled& compiled : same_hash)
    if (compiled.backend == backend && compiled.options == options &&
        same_graph(*compiled.trace->graph_of(compiled.live), *graph))
      return compiled.runnable;
  Runnable made{compile_or_fall_back(graph, options), std::make_shared<std::mutex>()};
  increment(metrics().compiles);
  same_hash.push_back({backend, trace.shared_from_this(), live, std::move(options), made});
  return made;
}

}  // namespace

CompiledTrace::CompiledTrace(Tape tape, DynamicScalars dynamic_scalars, std::vector<bool> live,
                             bool deterministic)
    : tape_(std::move(tape)),
      dynamic_scalars_(std::move(dynamic_scalars)),
      deterministic_(deterministic),
      live_(std::move(live)) {
  if (!dynamic_scalars_.empty()) {
    uint32_t next = 0;
    for (size_t i = 0; i < tape_.size(); ++i) {
      dynamic_scalar_begins_.push_back(next);
      const size_t end = tape_.words_begin(i) + tape_.words(i).size();
      while (next < dynamic_scalars_.size() && dynamic_scalars_[next].word < end) ++next;
    }
    dynamic_scalar_begins_.push_back(next);
  }
  outputs_.reserve(tape_.size());
  for (size_t i = 0; i < tape_.size(); ++i) {
    outputs_.push_back(decode_outputs(tape_.outputs(i)));
    keep_location(tape_.entry(i).location);
  }
}

std::shared_ptr<const CompiledTrace::Version> CompiledTrace::version() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return version_;
}

std::shared_ptr<const CompiledTrace::Version> CompiledTrace::version_for(
    const std::vector<bool>& live) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (version_ && subset(live, version_->live)) return version_;
  const bool already_asked = subset(live, live_);
  if (!already_asked && !failed_) {
    unite(live_, live);
    enqueue_compile(shared_from_this());
  }
  return nullptr;
}

void CompiledTrace::compile() {
  std::vector<bool> live;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    live = live_;
  }
  std::shared_ptr<const Version> made;
  try {
    auto version = std::make_shared<Version>();
    {
      const PassTimer timer("graph");
      version->graph = graph_from_tape(tape_, live, dynamic_scalars_);
    }
    version->live = std::move(live);
    const Runnable runnable = executable_for(*this, version->graph, version->live, deterministic_);
    version->executable = runnable.executable;
    version->running = runnable.running;
    if (config().debug >= kDebugGraphs)
      debug_print("graph " + hash_graph(*version->graph.graph).hex() + "\n" +
                  print_graph(*version->graph.graph));
    version->graph.graph.reset();
    made = std::move(version);
  } catch (const std::exception& error) {
    if (increment(metrics().fallbacks["compile failed"]) == 1)
      warn_in_background("a window could not be compiled, it stays eager: " + first_line(error));
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  failed_ = !made;
  count_compiled(tape_.size());
  version_ = std::move(made);
  finished_.store(true, std::memory_order_release);
  ++finished_count;
}

namespace {

// The cache's lock is held.
void queue_compile(const std::shared_ptr<CompiledTrace>& trace) {
  trace->queue = compile_queue_generation();
  enqueue_compile(trace);
}

}  // namespace

std::shared_ptr<CompiledTrace> compiled_trace(const Tape& recorded,
                                              const DynamicScalars& dynamic_scalars,
                                              const std::vector<bool>& live, bool deterministic,
                                              std::chrono::nanoseconds spent) {
  Tape masked;  // left empty without dynamic_scalars
  if (!dynamic_scalars.empty()) masked = recorded.prefix(recorded.size());
  for (const DynamicScalar& number : dynamic_scalars) masked.clear_word(number.word);
  const Tape& tape = dynamic_scalars.empty() ? recorded : masked;
  const Tape::Hash hash = tape.hash();
  Cache& all = cache();
  const std::lock_guard<std::mutex> lock(all.mutex);
  std::shared_ptr<CompiledTrace> found;
  for (const auto& trace : all.traces[hash])
    if (trace->dynamic_scalars() == dynamic_scalars && trace->deterministic() == deterministic &&
        trace->tape().same_words(tape))
      found = trace;
  if (!found) {
    if (all.operations > kMostOperations) {
      all.traces.clear();
      all.operations = 0;
      ++all.generation;
    }
    all.operations += tape.size();
    found = std::make_shared<CompiledTrace>(tape.prefix(tape.size()), dynamic_scalars, live,
                                            deterministic);
    all.traces[hash].push_back(found);
  }
  if (found->finished()) return found;
  found->spent += spent;
  // A child of a fork has the traces that were on their way, but not the thread that had them.
  if (found->queue != compile_queue_generation() &&
      compiling_pays(tape.size(), found->spent, has_one_core()))
    queue_compile(found);
  return found;
}

void queue_all_compiles() {
  Cache& all = cache();
  const std::lock_guard<std::mutex> lock(all.mutex);
  for (const auto& entry : all.traces)
    for (const auto& trace : entry.second)
      if (!trace->finished() && trace->queue != compile_queue_generation()) queue_compile(trace);
}

uint64_t finished_compiles() {
  return finished_count.load(std::memory_order_acquire);
}

uint64_t trace_generation() {
  return cache().generation.load(std::memory_order_acquire);
}

std::vector<std::shared_ptr<torch::jit::Graph>> compiled_graphs() {
  std::vector<std::shared_ptr<const CompiledTrace>> compiled;
  {
    Cache& all = cache();
    const std::lock_guard<std::mutex> lock(all.mutex);
    for (const auto& entry : all.traces)
      compiled.insert(compiled.end(), entry.second.begin(), entry.second.end());
  }
  std::vector<std::shared_ptr<torch::jit::Graph>> graphs;
  for (const auto& trace : compiled)
    if (const auto version = trace->version()) graphs.push_back(trace->graph_of(version->live));
  return graphs;
}

}  // namespace torch_lazy
