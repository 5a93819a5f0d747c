// Runs a part of the compiler so that it can crash or run too long and the process goes on.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace torch_lazy::compiler {

// Runs `work` on a thread of its own, whose stack has a known size, and waits for it. `safe_point`,
// where not null, is called at each reach_safe_point(). False with `failure` set where it crashed,
// met an error that LLVM cannot go on after, or gave up at the deadline. What it had allocated is
// then lost, and objects it worked on must not be used again.
bool run_guarded(llvm::function_ref<void()> work, int64_t time_limit_ns, void (*safe_point)(),
                 std::string& failure);

// Processor time of the calling thread: a compile yields to everything else on the machine.
std::chrono::nanoseconds processor_time();

// Called by `work` where it holds no lock: the process may be forked meanwhile. Leaves `work`,
// without running destructors, when its time is over.
void reach_safe_point();

}  // namespace torch_lazy::compiler
