// A graph's executable, whatever its backend makes of it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "backend/backend.h"
#include "ir/graph_hash.h"

namespace torch_lazy {

// Runs what another backend does not compile, or does slower: node by node, through ATen.
inline constexpr const char* kReferenceBackend = "reference";

struct GraphToCompile {
  std::shared_ptr<torch::jit::Graph> graph;  // given to the backend, which may change it
  GraphHash hash;
  std::function<std::shared_ptr<torch::jit::Graph>()> make_again;  // the same graph
};

// The executable that `backend` compiles, checked at every run (checked_executable.h). Raises what
// the backend raises.
std::shared_ptr<Executable> compile_by(const std::string& backend, const GraphToCompile& graph,
                                       const CompileOptions& options);

// The executable that `backend` compiles, checked at every run (checked_executable.h). Where the
// backend raises anything at all or returns nothing, the graph is run node by node by the reference
// backend, which is counted, and warned about once a process; raises what that raises.
std::shared_ptr<Executable> compile_or_fall_back(const std::string& backend,
                                                 const GraphToCompile& graph,
                                                 const CompileOptions& options);

}  // namespace torch_lazy
