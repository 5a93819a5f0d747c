// Fork safety of the whole library.
//
// A child has one thread only, the one that forked. A lock that another thread held would stay
// locked there, and what that thread was changing would stay half changed. So before a fork, in
// this order:
//
//   1. Background work (compiles) is paused at a safe point: where it holds no lock and has left
//      everything that threads share whole, LLVM's state and TorchScript's included.
//   2. Every lock of the process is taken, in the order of LockOrder.
//
// After it both are undone in reverse, in the parent and in the child. The child then has what was
// compiled, and may compile.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>

namespace torch_lazy {

// The order of the locks that the process shares: a thread that holds one takes only later ones.
enum class LockOrder : uint8_t {
  kRecording,     // windows and the owners of bound storages
  kTraceCache,    // which traces there are
  kTraces,        // the versions of each
  kCompileQueue,  // what is to be compiled
  kExecutables,   // by graph
  kKernels,       // by source
  kBackends,      // the registry
  kOperators,     // what is known of each, made of what other tables say
  kOffload,       // where the bytes of mirrored storages are
  kLeaf,          // counters and tables: while one is held, none but kMemory is taken
  kMemory,        // the allocator
};

// Runs `before` in each thread that forks, in the order of `order`, and `after` in reverse order,
// on both sides. Neither may allocate memory of tensors. For good: what they use is never
// destroyed.
void register_at_fork(LockOrder order, std::function<void()> before,
                      std::function<void(bool in_child)> after);

// A mutex that no child inherits locked. It lives as long as the process.
class ForkSafeMutex : public std::mutex {
 public:
  explicit ForkSafeMutex(LockOrder order) {
    register_at_fork(
        order, [this] { lock(); }, [this](bool) { unlock(); });
  }
};

// How many forks lie between this process and the first one that loaded the library: tells whether
// a thread that left its mark can still exist.
uint32_t fork_generation();

// The scope of work in the background that a fork must not find in the middle. Opened and closed
// without a lock of the library; blocks while a fork is under way. May be nested.
class PausableWork {
 public:
  PausableWork();
  ~PausableWork();
  PausableWork(const PausableWork&) = delete;
  PausableWork& operator=(const PausableWork&) = delete;
};

// A safe point of the calling thread's pausable work: where a fork waits, blocks until it is over.
// Does nothing outside of such work.
void safe_point_for_fork();

// The same, called by a thread that does pausable work of another one, which waits for it.
void safe_point_for_fork_of_other_thread();

// The scope of a wait in the middle of pausable work, for something that the forking thread may
// hold: the interpreter's lock. The work counts as paused, so it must be at a safe point.
class BlockedWork {
 public:
  BlockedWork();
  ~BlockedWork();
  BlockedWork(const BlockedWork&) = delete;
  BlockedWork& operator=(const BlockedWork&) = delete;

 private:
  const int depth_;  // of the thread's pausable work
};

// The scope of pausable work, of any thread, that may reach no safe point any more: no fork waits
// for it.
class OverdueWork {
 public:
  OverdueWork();
  ~OverdueWork();
  OverdueWork(const OverdueWork&) = delete;
  OverdueWork& operator=(const OverdueWork&) = delete;
};

// Whether there is such work now.
bool has_overdue_work();

// In a child: whether the work of its parent was at a safe point. Otherwise libraries that the work
// was inside may be locked for good, and the child must not call them.
bool forked_at_safe_point();

// How long a fork waits for a safe point before it goes on without: seconds, unless set by tests.
void set_patience_of_forks(std::chrono::milliseconds patience);

}  // namespace torch_lazy
