// A trace on its way from tape to executable, shared by every recorder that knows it.
#pragma once

#include <atomic>
#include <bit>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "ir/graph_from_tape.h"
#include "ir/graph_hash.h"
#include "runtime/compile_policy.h"
#include "runtime/compile_queue.h"
#include "runtime/execution_lock.h"
#include "runtime/geometry.h"
#include "runtime/remembered_traces.h"
#include "runtime/trace_clock.h"
#include "runtime/trace_conditions.h"
#include "tape/dynamic_scalars.h"
#include "tape/source_location.h"
#include "tape/tape.h"

namespace torch_lazy {

// What an operation of a known trace returns where it is deferred. Many have the same geometry,
// which is the trace's.
struct KnownOutput : OutputHeader {
  const Geometry* geometry;
};

// Made by std::make_shared only.
class CompiledTrace final : public CompileJob, public std::enable_shared_from_this<CompiledTrace> {
 public:
  // `live`: by storage slot, whether it outlived the window when the trace was taped.
  CompiledTrace(Tape tape, DynamicScalars dynamic_scalars, std::vector<bool> live,
                TraceConditions conditions,
                std::shared_ptr<TraceClock> clock = std::make_shared<TraceClock>());

  // Dynamic scalars are 0 on it: the trace has none of its own.
  const Tape& tape() const { return tape_; }
  const DynamicScalars& dynamic_scalars() const { return dynamic_scalars_; }
  const TraceConditions& conditions() const { return conditions_; }
  // Views of tensors that have memory, which are complete as soon as they are deferred.
  bool makes_only_views() const { return makes_only_views_; }
  CompileSize compile_size() const { return {tape_.size(), operators_}; }
  // Of one operation.
  c10::ArrayRef<DynamicScalar> dynamic(size_t operation) const {
    if (dynamic_scalars_.empty()) return {};
    const uint32_t begin = dynamic_scalar_begins_[operation];
    return {dynamic_scalars_.data() + begin, dynamic_scalar_begins_[operation + 1] - begin};
  }
  c10::ArrayRef<KnownOutput> outputs(size_t operation) const {
    const uint32_t begin = operation == 0 ? 0 : outputs_ends_[operation - 1];
    return {outputs_.data() + begin, outputs_ends_[operation] - begin};
  }

  // What a compile made of the trace; immutable.
  struct Version {
    // Without its TorchScript graph, which is as large as all the rest: see graph_of().
    WindowGraph graph;
    GraphHash hash;          // of that graph
    std::vector<bool> live;  // storage slots that are outputs of the graph
    std::shared_ptr<Executable> executable;
    std::shared_ptr<ExecutionLock> running;  // held while an executable runs that is not concurrent

    // Calls what runs the executable or a part of such a run. Several threads may know the trace:
    // waits for those that run an executable which one thread runs at a time.
    template <typename Run>
    auto alone(const Run& run) const {
      if (executable->is_concurrent()) [[likely]]
        return run();
      const std::lock_guard only(*running);
      return run();
    }
    RunResult run(c10::ArrayRef<at::Tensor> inputs) const {
      return alone([&] { return executable->run(inputs); });
    }
  };
  // Null until compiled, and for a trace whose compile failed.
  std::shared_ptr<const Version> version() const;
  // It was recorded again.
  void note_use() { last_use_.store(clock_->tick(), std::memory_order_relaxed); }
  uint64_t last_use() const { return last_use_.load(std::memory_order_relaxed); }  // by the clock
  // The cache has no room for it any more: no window that begins from now on is to follow it.
  void drop() { dropped_.store(true, std::memory_order_relaxed); }
  bool is_dropped() const { return dropped_.load(std::memory_order_relaxed); }
  // It has run as compiled.
  void note_run() {
    note_use();
    const int64_t runs = runs_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (runs == 1) [[unlikely]]
      count_first_run();
    if (runs >= kLeastRunsToRemember && std::has_single_bit(uint64_t(runs)) &&
        !conditions_.deterministic) [[unlikely]]
      ask_to_remember_traces();
  }
  int64_t runs() const { return runs_.load(std::memory_order_relaxed); }
  // The compile has ended, well or not.
  bool finished() const { return finished_.load(std::memory_order_acquire); }

  // Makes sure that a version for this live set exists or is being compiled: an executable serves
  // every subset of its live set, and a larger one is the union of all seen, so that the moment of
  // garbage collection makes no endless versions. Returns a version that serves it, or null.
  std::shared_ptr<const Version> version_for(const std::vector<bool>& live);

  // The graph that was compiled for these outputs, made from the tape.
  std::shared_ptr<torch::jit::Graph> graph_of(const std::vector<bool>& live) const {
    return graph_from_tape(tape_, live, dynamic_scalars_, conditions_.device).graph;
  }

  // A compile that fails is counted, warned about once, and leaves the trace to eager execution.
  void compile() override;
  // Queues its first version, or has what is queued already compiled in its turn whatever it was to
  // wait for.
  void queue(CompileWhen when) {
    CompileWhen before = queued_;
    while (before < when && !queued_.compare_exchange_weak(before, when)) {
    }
    if (before == CompileWhen::kNot) enqueue_compile(shared_from_this());
  }
  CompileWhen queued() const { return queued_; }
  bool put_off() override {
    CompileWhen waiting = CompileWhen::kIfACoreIsIdle;
    return queued_.compare_exchange_strong(waiting, CompileWhen::kNot);
  }

 private:
  const Tape tape_;
  const DynamicScalars dynamic_scalars_;
  const TraceConditions conditions_;
  const uint64_t operators_;  // their hash
  bool makes_only_views_ = true;
  const std::shared_ptr<TraceClock> clock_;
  std::vector<uint32_t>
      dynamic_scalar_begins_;           // by operation, and one past; none without dynamic_scalars
  std::vector<KnownOutput> outputs_;    // of all operations
  std::vector<uint32_t> outputs_ends_;  // by operation
  std::deque<Geometry> geometries_;     // of `outputs_`, each once
  std::unordered_set<std::shared_ptr<const CodeLines>> code_;  // of the tape's source locations
  // Guarded by one lock of all traces, which is held for a few instructions (compiled_trace.cpp):
  std::vector<bool> live_;
  std::shared_ptr<const Version> version_;
  bool failed_ = false;
  std::atomic<bool> finished_{false};  // read without the lock
  std::atomic<int64_t> runs_{0};       // as compiled
  std::atomic<CompileWhen> queued_{CompileWhen::kNot};
  std::atomic<uint64_t> last_use_{0};
  std::atomic<bool> dropped_{false};
};

// Counts compiles that have ended: where it has not moved, no trace has become ready.
uint64_t finished_compiles();

}  // namespace torch_lazy
