// TORCH_LAZY_DEBUG=1..5: each level shows one layer more on stderr.
#pragma once

#include <string>

#include "trace/tape.h"

namespace torch_lazy {

enum DebugLevel { kDebugWindows = 1, kDebugGraphs, kDebugPasses, kDebugKernels, kDebugOperations };

void debug_window(const std::string& cause, const char* state, const Tape& tape);
void debug_operation(const OperatorInfo& op, LocationId location, bool deferred);

}  // namespace torch_lazy
