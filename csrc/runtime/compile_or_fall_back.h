// A graph's executable, whatever its backend makes of it.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"

namespace torch_lazy {

// The executable that `backend` compiles. Where it raises, the graph is run node by node by the
// reference backend, which is counted, and warned about once a process; raises what that raises.
std::shared_ptr<Executable> compile_or_fall_back(const std::string& backend,
                                                 const std::shared_ptr<torch::jit::Graph>& graph,
                                                 const CompileOptions& options);

}  // namespace torch_lazy
