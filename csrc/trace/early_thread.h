// The thread that gives a device the early stages of one recorder's windows, while the program goes
// on recording.
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
  // Done one at a time, in the order in which they were posted. May not raise.
  using Task = std::function<void()>;

  // Not while another thread forks: the recording lock is held. `has_thread`: whether there is one.
  // Without, as by default on a machine with one core, who posts a task does it.
  TORCH_LAZY_API EarlyThread();
  TORCH_LAZY_API explicit EarlyThread(bool has_thread);
  EarlyThread(const EarlyThread&) = delete;
  EarlyThread& operator=(const EarlyThread&) = delete;

  TORCH_LAZY_API void post(Task task);
  // Waits until all tasks are done, without the GIL, which they may need. False where some were
  // lost, and what they were to change is not known: a child of a fork has not the thread that did
  // them, and at the end of the process none is begun any more.
  TORCH_LAZY_API bool wait();
  // Drops what was not begun, and waits for what was. Returns what wait() would; what was lost is
  // forgotten.
  TORCH_LAZY_API bool cancel();

  // Of all such threads, at the end of the process: nothing is begun any more, and what was has
  // some seconds to end.
  TORCH_LAZY_API static void stop_all() noexcept;

 private:
  using Lock = std::unique_lock<std::mutex>;

  void work();
  void await_idle();
  void after_fork(bool in_child);
  void set_busy(bool busy) { busy_.store(busy, std::memory_order_release); }

  const bool has_thread_;
  std::mutex mutex_;  // guards what follows; the atomic is written under it, and looked at without
  std::deque<Task> tasks_;
  std::atomic<bool> busy_{false};  // there are tasks, or one is being done
  bool doing_ = false;             // a task that is no longer among `tasks_`
  bool started_ = false, sleeping_ = false, stopped_ = false;
  bool lost_ = false;
  std::condition_variable posted_, idle_;
};

}  // namespace torch_lazy
