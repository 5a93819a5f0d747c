// Compiles traces on one background thread at idle priority, so that a compile never makes the
// script wait. The thread starts with the first job and again after a fork.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

namespace torch_lazy {

class CompiledTrace;

void enqueue_compile(std::shared_ptr<CompiledTrace> trace);

// Blocks until nothing is queued or compiling; false when the time ran out first. Call without the GIL.
bool wait_for_compiles(std::optional<std::chrono::milliseconds> timeout);

}  // namespace torch_lazy
