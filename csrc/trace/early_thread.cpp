#include "trace/early_thread.h"

#include <pthread.h>

#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/fork.h"
#include "base/without_gil.h"
#include "runtime/compile_policy.h"

namespace torch_lazy {
namespace {

using Clock = std::chrono::steady_clock;

// How long the thread looks for the next task before it sleeps: a few times what lies between two
// while a program records, since to wake it takes the recording thread a good part of that.
constexpr std::chrono::microseconds kLookout{200};
// At the end of the process: for a task that waits for something that no longer comes.
constexpr std::chrono::seconds kPatience{5};

struct All {
  ForkSafeMutex mutex{LockOrder::kLeaf};  // guards what follows
  std::vector<EarlyThread*> threads;
};

All& all() {
  static auto& instance = *new All;
  return instance;
}

// What is made during a fork is not covered by it.
[[maybe_unused]] All& made_at_load = all();

// Looks at the flag for a while. Returns whether it has become so.
bool becomes(const std::atomic<bool>& flag, bool wanted, std::chrono::microseconds patience) {
  const Clock::time_point begin = Clock::now();
  while (flag.load(std::memory_order_acquire) != wanted)
    if (Clock::now() - begin >= patience) return false;
  return true;
}

}  // namespace

EarlyThread::EarlyThread() {
  register_at_fork(
      LockOrder::kLeaf, [this] { mutex_.lock(); }, [this](bool in_child) { after_fork(in_child); });
  const std::lock_guard lock(all().mutex);
  all().threads.push_back(this);
}

// The child has no such thread yet. Its parent's was between two tasks, unless it could not be
// waited for.
void EarlyThread::after_fork(bool in_child) {
  if (in_child) {
    started_ = sleeping_ = false;
    lost_ |= busy_.exchange(false);
    std::construct_at(&posted_);
    std::construct_at(&done_);
  }
  mutex_.unlock();
}

void EarlyThread::post(Task task) {
  static const bool one_core = has_one_core();
  Lock lock(mutex_);
  if (stopped_) {
    lost_ = true;
    return;
  }
  tasks_.push_back(std::move(task));
  if (one_core) {
    while (do_next(lock)) {
    }
    return;
  }
  has_tasks_ = true;
  if (!std::exchange(started_, true)) std::thread([this] { work(); }).detach();
  if (sleeping_) posted_.notify_one();
}

bool EarlyThread::wait() {
  Lock lock(mutex_);
  while (busy_ || !tasks_.empty())
    if (!do_next(lock)) await_the_one_begun(lock);
  return !lost_;
}

bool EarlyThread::cancel() {
  Lock lock(mutex_);
  tasks_.clear();
  await_the_one_begun(lock);
  return !std::exchange(lost_, false);
}

void EarlyThread::await_the_one_begun(Lock& lock) {
  if (!busy_) return;
  lock.unlock();
  {
    const WithoutGil without_gil;
    if (!becomes(busy_, false, kLookout)) {
      lock.lock();
      done_.wait(lock, [&] { return !busy_; });
      lock.unlock();  // who forks takes it with the GIL
    }
  }
  lock.lock();
}

bool EarlyThread::do_next(Lock& lock) {
  has_tasks_ = !tasks_.empty();
  if (busy_ || tasks_.empty()) return false;
  Task task = std::move(tasks_.front());
  tasks_.pop_front();
  busy_ = true;
  lock.unlock();
  task();
  task = nullptr;
  lock.lock();
  busy_ = false;
  done_.notify_all();
  return true;
}

void EarlyThread::work() {
  pthread_setname_np(pthread_self(), "lazy early runs");
  for (;;) {
    {
      const PausableWork work;
      Lock lock(mutex_);
      while (do_next(lock)) {
      }
    }
    if (becomes(has_tasks_, true, kLookout)) continue;
    Lock lock(mutex_);
    sleeping_ = true;
    posted_.wait(lock, [&] { return !tasks_.empty(); });
    sleeping_ = false;
  }
}

void EarlyThread::stop_all() noexcept {
  std::vector<EarlyThread*> threads;
  {
    const std::lock_guard lock(all().mutex);
    threads = all().threads;
  }
  for (EarlyThread* const thread : threads) {
    Lock of_thread(thread->mutex_);
    thread->stopped_ = true;
    thread->lost_ |= !thread->tasks_.empty();
    thread->tasks_.clear();
    thread->done_.wait_for(of_thread, kPatience, [&] { return !thread->busy_; });
  }
}

}  // namespace torch_lazy
