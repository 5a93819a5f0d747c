// Compiles on one background thread at a lower priority than the script's, which waits for one only
// under deterministic algorithms. The thread starts with the first job. A forked child has the jobs
// that its parent had, the one under way first; its own thread starts when it compiles or waits for
// the first time.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "base/api.h"

namespace torch_lazy {

// Something to be compiled, or to be done beside compiles. One under way at a fork is begun again
// in the child.
class CompileJob {
 public:
  virtual ~CompileJob() = default;
  // Called by the compile queue, off the recording thread. Must not raise.
  virtual void compile() = 0;
  // At its turn, where no core is idle: whether it leaves the queue and is not compiled. Called
  // with the queue's lock.
  virtual bool put_off() { return false; }
};

void enqueue_compile(std::shared_ptr<CompileJob> job);

// In a child of a fork that has jobs and no thread yet: starts the thread. Called where a trace
// that is in the queue would be of use.
void resume_compiles();

// Drops what is queued and waits, for a few seconds at most, for the compile under way: the process
// ends, and libraries are about to be torn down. Nothing is compiled afterwards.
void stop_compiles() noexcept;

// Blocks until nothing is queued or compiling; false when the time ran out first. Call without the
// GIL.
TORCH_LAZY_MODULE_API bool wait_for_compiles(std::optional<std::chrono::milliseconds> timeout);

}  // namespace torch_lazy
