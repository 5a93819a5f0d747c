// The executable of a graph: remembered to be the fastest, or found out by running it.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"
#include "runtime/compile_or_fall_back.h"

namespace torch_lazy {

// What `backend` compiles (compile_or_fall_back.h), as a MeasuredChoice where measuring may decide:
// not under deterministic algorithms, which leave nothing to time, not where both ways are compared
// anyway (`verify`), not on devices that run behind the host, whose times tell nothing.
std::shared_ptr<Executable> choose_executable(const std::string& backend,
                                              const GraphToCompile& graph,
                                              const CompileOptions& options);

}  // namespace torch_lazy
