// Executables by the structure of their graphs: traces that differ in source lines only share one.
#pragma once

#include <functional>
#include <memory>
#include <unordered_set>

#include "backend/backend.h"
#include "ir/graph_from_tape.h"
#include "ir/graph_hash.h"
#include "runtime/execution_lock.h"
#include "runtime/trace_conditions.h"

namespace torch_lazy {

struct Runnable {
  std::shared_ptr<Executable> executable;
  std::shared_ptr<ExecutionLock> running;  // held while an executable runs that is not concurrent
  GraphHash hash;                          // of the graph
};

// The executable of the backend that is chosen now for the window's graph, compiled if there is
// none yet. `make_graph` makes that graph, for comparison with later ones, and owns what it needs.
// A graph that the backend does not compile is run node by node, which is counted and warned about
// once.
Runnable executable_for(const WindowGraph& window, const TraceConditions& conditions,
                        std::function<std::shared_ptr<torch::jit::Graph>()> make_graph);

// Forgets these, or all.
void forget_executables(const std::unordered_set<const Executable*>& executables);
void clear_executables();

}  // namespace torch_lazy
