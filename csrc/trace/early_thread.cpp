#include "trace/early_thread.h"

#include <pthread.h>
#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/fork.h"
#include "base/without_gil.h"
#include "runtime/idle_cores.h"

namespace torch_lazy {
namespace {

using Clock = std::chrono::steady_clock;

// How long one of the two threads looks for the other's next word before it sleeps: somewhat longer
// than a program takes from one post to the next. To wake a thread takes the one that records a
// good part of that.
constexpr std::chrono::microseconds kLookout{150};
// At the end of the process: for a task that waits for something that no longer comes.
constexpr std::chrono::seconds kPatience{5};

struct All {
  ForkSafeMutex mutex{LockOrder::kLeaf};  // guards what follows
  std::vector<EarlyThread*> threads;
  bool stopped = false;
};

All& all() {
  static auto& instance = *new All;
  return instance;
}

// What is made during a fork is not covered by it.
[[maybe_unused]] All& early_thread_made_at_load = all();

// Looks at the flag for a while.
void look_out(const std::atomic<bool>& flag, bool wanted) {
  const Clock::time_point begin = Clock::now();
  while (flag.load(std::memory_order_acquire) != wanted && Clock::now() - begin < kLookout) {
#if defined(__x86_64__) || defined(_M_X64)
    _mm_pause();
#endif
  }
}

}  // namespace

EarlyThread::EarlyThread() : EarlyThread(!runs_on_one_core()) {}

EarlyThread::EarlyThread(bool has_thread) : has_thread_(has_thread) {
  register_at_fork(
      LockOrder::kLeaf, [this] { mutex_.lock(); }, [this](bool in_child) { after_fork(in_child); });
  const std::lock_guard lock(all().mutex);
  stopped_ = all().stopped;
  all().threads.push_back(this);
}

// As with any run, a fork does not wait for a task. The child has no such thread yet; nothing is
// known of what its parent's was doing, so the tasks are not destroyed.
void EarlyThread::after_fork(bool in_child) {
  if (in_child) {
    lost_ |= busy_;
    static_cast<void>(new std::deque<Task>(std::move(tasks_)));
    tasks_.clear();
    started_ = sleeping_ = doing_ = false;
    set_busy(false);
    std::construct_at(&posted_);
    std::construct_at(&idle_);
  }
  mutex_.unlock();
}

void EarlyThread::post(Task task) {
  if (!has_thread_) return task();
  const Lock lock(mutex_);
  lost_ |= stopped_;
  if (lost_) return;
  if (!started_) {
    std::thread([this] { work(); }).detach();
    started_ = true;
  }
  tasks_.push_back(std::move(task));
  set_busy(true);
  if (sleeping_) posted_.notify_one();
}

bool EarlyThread::wait() {
  await_idle();
  const Lock lock(mutex_);
  return !lost_;
}

bool EarlyThread::cancel() {
  {
    std::deque<Task> dropped;  // destroyed without the lock: they have tensors
    const Lock lock(mutex_);
    dropped.swap(tasks_);
    set_busy(doing_);
  }
  await_idle();
  const Lock lock(mutex_);
  return !std::exchange(lost_, false);
}

void EarlyThread::await_idle() {
  if (!busy_.load(std::memory_order_acquire)) return;
  const WithoutGil without_gil;  // taken again without the lock: who has it may fork
  look_out(busy_, false);
  Lock lock(mutex_);
  idle_.wait(lock, [&] { return !busy_; });
}

void EarlyThread::work() {
  pthread_setname_np(pthread_self(), "lazy early runs");
  Lock lock(mutex_);
  for (;;) {
    while (!tasks_.empty()) {
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      doing_ = true;
      lock.unlock();
      task();
      task = nullptr;
      lock.lock();
      doing_ = false;
    }
    set_busy(false);
    idle_.notify_all();
    lock.unlock();
    look_out(busy_, true);
    lock.lock();
    sleeping_ = true;
    posted_.wait(lock, [&] { return !tasks_.empty(); });
    sleeping_ = false;
  }
}

void EarlyThread::stop_all() noexcept {
  std::vector<EarlyThread*> threads;
  {
    const std::lock_guard lock(all().mutex);
    all().stopped = true;
    threads = all().threads;
  }
  for (EarlyThread* const thread : threads) {
    std::deque<Task> dropped;
    Lock lock(thread->mutex_);
    thread->stopped_ = true;
    thread->lost_ |= !thread->tasks_.empty();
    dropped.swap(thread->tasks_);
    thread->set_busy(thread->doing_);
    thread->idle_.wait_for(lock, kPatience, [&] { return !thread->busy_; });
    lock.unlock();  // before they are destroyed
  }
}

}  // namespace torch_lazy
