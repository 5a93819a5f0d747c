// All traces that were seen at least twice, shared by the recorders of all threads.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "base/api.h"
#include "runtime/compiled_trace.h"

namespace torch_lazy {

// The compiled trace with these words, whatever the dynamic scalars, made if there is none yet; it
// is queued for compiling once that pays. `spent`: how long its recording took.
std::shared_ptr<CompiledTrace> compiled_trace(const Tape& tape,
                                              const DynamicScalars& dynamic_scalars,
                                              const std::vector<bool>& live,
                                              const TraceConditions& conditions,
                                              std::chrono::nanoseconds spent);

// Queues the traces whose compiles are put off.
TORCH_LAZY_MODULE_API void queue_all_compiles();

// Empties the cache: what was compiled is not used by windows that begin from now on, and windows
// that repeat are compiled again.
void forget_traces();

// Changes when the cache was emptied, also because it had grown too large: whoever knows traces
// forgets them.
uint64_t trace_generation();

// The graphs of all versions compiled so far, for printing.
TORCH_LAZY_MODULE_API std::vector<std::shared_ptr<torch::jit::Graph>> compiled_graphs();

}  // namespace torch_lazy
