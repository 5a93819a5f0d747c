// The thread that gives a device the early stages of one recorder's windows, while the program goes
// on recording.
//
// Tasks run one at a time in the order in which they were posted: there, or on the thread that
// waits for them. On a machine with one core there is no such thread, and they run when posted.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

#include "base/api.h"

namespace torch_lazy {

// Posted to, waited for and cancelled by one thread at a time. Never destroyed: its thread may
// outlive static destructors, and forks take its lock.
class EarlyThread {
 public:
  // May not raise. A fork waits for its end.
  using Task = std::function<void()>;

  TORCH_LAZY_API EarlyThread();
  EarlyThread(const EarlyThread&) = delete;
  EarlyThread& operator=(const EarlyThread&) = delete;

  TORCH_LAZY_API void post(Task task);
  // Does what was not begun, and waits for what was. Releases the GIL meanwhile, which a task may
  // need. Returns whether all that was posted since the last cancel() has been done: a fork may
  // have left a task behind, and at the end of the process nothing is begun any more.
  TORCH_LAZY_API bool wait();
  // Drops what was not begun, and waits for what was. Returns whether that has ended.
  TORCH_LAZY_API bool cancel();

  // Of all such threads, at the end of the process: as cancel(), and nothing is begun any more.
  TORCH_LAZY_API static void stop_all() noexcept;

 private:
  using Lock = std::unique_lock<std::mutex>;

  void work();
  // The first task, if there is one and none is being done. Releases the lock meanwhile.
  bool do_next(Lock& lock);
  void await_the_one_begun(Lock& lock);
  void after_fork(bool in_child);

  std::mutex mutex_;  // guards what follows; the atomics are looked at without it
  std::deque<Task> tasks_;
  std::atomic<bool> has_tasks_{false};
  std::atomic<bool> busy_{false};  // with a task that is no longer among `tasks_`
  bool started_ = false, sleeping_ = false, stopped_ = false;
  bool lost_ = false;  // a task, by a fork or since nothing is begun any more
  std::condition_variable posted_, done_;
};

}  // namespace torch_lazy
