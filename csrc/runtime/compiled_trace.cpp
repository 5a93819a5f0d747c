#include "runtime/compiled_trace.h"

#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "base/config.h"
#include "base/debug.h"
#include "base/fork.h"
#include "base/metrics.h"
#include "base/pass_times.h"
#include "base/warn.h"
#include "ir/print.h"
#include "ops/operator_info.h"
#include "profile/range.h"
#include "runtime/compile_queue.h"
#include "runtime/executable_cache.h"

namespace torch_lazy {
namespace {

std::atomic<uint64_t> finished_count{0};

// One lock for all traces, so that a fork can take it.
std::mutex& traces_mutex() {
  static auto* const mutex = new ForkSafeMutex(LockOrder::kTraces);
  return *mutex;
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

}  // namespace

CompiledTrace::CompiledTrace(Tape tape, DynamicScalars dynamic_scalars, std::vector<bool> live,
                             TraceConditions conditions, std::shared_ptr<TraceClock> clock)
    : tape_(std::move(tape)),
      dynamic_scalars_(std::move(dynamic_scalars)),
      conditions_(conditions),
      operators_(tape_.hash_of_operators()),
      clock_(std::move(clock)),
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
  outputs_.reserve(tape_.size());  // most operations return one tensor
  outputs_ends_.reserve(tape_.size());
  std::map<std::pair<Dims, Dims>, const Geometry*> known;
  for (size_t i = 0; i < tape_.size(); ++i) {
    for (const OutputMetadata& output : decode_outputs(tape_.outputs(i))) {
      const Geometry*& geometry = known[{output.sizes, output.strides}];
      if (!geometry)
        geometry = &geometries_.emplace_back(geometry_of(output.sizes, output.strides));
      outputs_.push_back({output, geometry});
    }
    outputs_ends_.push_back(uint32_t(outputs_.size()));
    if (auto code = keep_location(tape_.entry(i).location)) code_.insert(std::move(code));
    makes_only_views_ &= tape_.entry(i).op->effects->only_views();
  }
}

std::shared_ptr<const CompiledTrace::Version> CompiledTrace::version() const {
  const std::lock_guard<std::mutex> lock(traces_mutex());
  return version_;
}

std::shared_ptr<const CompiledTrace::Version> CompiledTrace::version_for(
    const std::vector<bool>& live) {
  const std::lock_guard<std::mutex> lock(traces_mutex());
  if (version_ && subset(live, version_->live)) return version_;
  const bool already_asked = subset(live, live_);
  if (already_asked) {
    resume_compiles();
  } else if (!failed_) {
    unite(live_, live);
    enqueue_compile(shared_from_this());
  }
  return nullptr;
}

void CompiledTrace::compile() {
  std::optional<Range> range;
  if (is_profiled())
    range.emplace(ProfileEvent{.kind = EventKind::kCompile,
                               .name = "window",
                               .lines = {tape_.entry(0).location},
                               .operations = int64_t(tape_.size())});
  queued_ = CompileWhen::kInTurn;  // versions for other live sets are not put off
  std::vector<bool> live;
  {
    const std::lock_guard<std::mutex> lock(traces_mutex());
    live = live_;
  }
  const int64_t begin = total_pass_time();
  std::shared_ptr<const Version> made;
  try {
    auto version = std::make_shared<Version>();
    {
      const PassTimer timer("graph");
      version->graph = graph_from_tape(tape_, live, dynamic_scalars_, conditions_.device);
    }
    version->live = live;
    const Runnable runnable =
        executable_for(version->graph, conditions_,
                       [trace = shared_from_this(), live] { return trace->graph_of(live); });
    version->executable = runnable.executable;
    version->running = runnable.running;
    version->hash = runnable.hash;
    version->graph.graph.reset();  // the backend may have changed it
    if (config().debug >= kDebugGraphs) {
      const auto graph = graph_of(live);
      debug_print("graph " + hash_graph(*graph).hex() + "\n" + print_graph(*graph));
    }
    made = std::move(version);
  } catch (const std::exception& error) {
    if (increment(metrics().fallbacks["compile failed"]) == 1)
      warn_in_background("a window could not be compiled, it stays eager: " + first_line(error));
  }
  if (made) count_compiled(compile_size(), std::chrono::nanoseconds(total_pass_time() - begin));
  const std::lock_guard<std::mutex> lock(traces_mutex());
  failed_ = !made;
  if (made && !version_) count_ready_trace();
  version_.swap(made);  // what was there is destroyed without the lock
  finished_.store(true, std::memory_order_release);
  ++finished_count;
}

uint64_t finished_compiles() {
  return finished_count.load(std::memory_order_acquire);
}

}  // namespace torch_lazy
