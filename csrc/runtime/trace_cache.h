// The traces that were seen at least twice, or once and are remembered (remembered_traces.h), most
// of them shared by the recorders of all threads.
//
// There is room for so many operations of each owner's (config.trace_operations), since a window of
// a thousand takes half a megabyte with its plan. Once that is used up new traces are turned away
// and stay eager, until what the script does now has come round several times: what was not used
// meanwhile makes room. A script whose windows do not all fit would otherwise compile them again
// and again, each to be dropped before it is back. What a sleeping thread's recorder knows stays
// until that records again.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "base/api.h"
#include "runtime/compiled_trace.h"
#include "runtime/remembered_traces.h"

namespace torch_lazy {

// Who finds a trace: null where all recorders do. Under deterministic algorithms each recorder has
// traces of its own, which nothing that another thread does, or did before, can change. Their
// executables are shared all the same: one is a function of its graph.
using TraceOwner = const void*;

// A recording that was seen before, if only by an earlier process.
struct RepeatedRecording {
  const Tape& tape;
  Tape::Hash structure;  // of the tape without the numbers that may be dynamic
  DynamicScalars dynamic_scalars;
  std::vector<bool> live;
  std::chrono::nanoseconds spent;  // on it
};

// The compiled trace with its words, whatever the dynamic scalars, made if there is none yet;
// null where there is no room for it. One that is shared is queued for compiling once that pays,
// one with an owner at once.
std::shared_ptr<CompiledTrace> compiled_trace(TraceOwner owner, const RepeatedRecording& recording,
                                              const TraceConditions& conditions);

// Those of the shared traces that have run at least so often, or were compiled since an earlier
// process had run them; with what was learnt last of their dynamic scalars.
RememberedTraces traces_to_remember(int64_t least_runs);

// Queues the traces whose compiles are put off.
TORCH_LAZY_MODULE_API void queue_all_compiles();

// Empties the cache: what was compiled is not used by windows that begin from now on, and windows
// that repeat are compiled again.
void forget_traces();

// Changes when traces of the owner's left the cache: whoever knows them forgets all where it was
// emptied, and else those that are dropped (CompiledTrace::is_dropped).
struct TraceGeneration {
  uint64_t emptied = 0, dropped = 0;
  bool operator==(const TraceGeneration&) const = default;
};
TraceGeneration trace_generation(TraceOwner owner);

// The owner has no traces from now on.
void drop_traces(TraceOwner owner);

// The graphs of all versions compiled so far, for printing.
TORCH_LAZY_MODULE_API std::vector<std::shared_ptr<torch::jit::Graph>> compiled_graphs();

}  // namespace torch_lazy
