#include "runtime/compile_queue.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

#include "backend/registry.h"
#include "base/config.h"
#include "base/fork.h"
#include "runtime/idle_cores.h"

namespace torch_lazy {
namespace {

// Global: one queue a process. Never destroyed, because its thread may outlive static destructors.
struct Queue {
  std::mutex mutex;  // guards everything below
  std::condition_variable changed;
  std::deque<std::shared_ptr<CompileJob>> jobs;
  std::shared_ptr<CompileJob> compiling;  // null while nothing is compiled
  bool started = false;
  bool stopped = false;

  Queue();
  void start_thread();
  void stop() {
    stopped = true;
    jobs.clear();
  }
};

Queue& queue() {
  static Queue* const instance = new Queue;
  return *instance;
}

// Made when the library is loaded: what is made during a fork is not covered by it.
[[maybe_unused]] Queue& compile_queue_made_at_load = queue();

// A child has no compile thread yet. What was being compiled is begun again.
void after_fork(Queue& jobs, bool in_child) {
  if (in_child) {
    if (jobs.compiling) jobs.jobs.push_front(std::move(jobs.compiling));
    jobs.started = false;
    std::construct_at(&jobs.changed);  // who waited is not in this process
    if (jobs.stopped || !forked_at_safe_point()) jobs.stop();
  }
  jobs.mutex.unlock();
}

Queue::Queue() {
  register_at_fork(
      LockOrder::kCompileQueue, [this] { mutex.lock(); },
      [this](bool in_child) { after_fork(*this, in_child); });
}

// Where all cores are busy a compile that is due gets two fifths of one (655 of 1024, by the
// scheduler's weights). A team of threads waits for its slowest, so every step pays for that; with
// a thirtieth it paid for ten times as long, and went without what is compiled meanwhile.
constexpr int kNiceness = 2;

void lower_priority() {
  // Not SCHED_IDLE: on a busy machine that thread could be stopped for long with a lock in hand.
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kNiceness);
}

// Longer than the pauses between the compiles of a script that has begun to repeat its steps.
constexpr std::chrono::milliseconds kPause{100};

// A backend that cannot be made, which its compiles have said, has nothing to give back; one that
// raises keeps what it has.
void trim_backend() noexcept {
  const PausableWork work;
  try {
    backend_by_name(backend_name()).trim();
  } catch (...) {
  }
}

// See Config::compile_delay.
void delay() {
  const int64_t most = config().compile_delay;
  if (most == 0) return;
  static std::minstd_rand random{std::random_device()()};
  std::this_thread::sleep_for(
      std::chrono::milliseconds(std::uniform_int_distribution<int64_t>(0, most)(random)));
}

void compile(Queue& jobs, std::shared_ptr<CompileJob>& job) {
  const PausableWork work;
  note_compile_begins();
  job->compile();
  note_compile_ends();
  std::unique_lock<std::mutex> lock(jobs.mutex);
  jobs.compiling.reset();
  lock.unlock();
  job.reset();  // while no fork is under way
}

void work() {
  lower_priority();
  Queue& jobs = queue();
  const auto has_jobs = [&] { return !jobs.jobs.empty(); };
  std::unique_lock<std::mutex> lock(jobs.mutex);
  for (;;) {
    if (!jobs.changed.wait_for(lock, kPause, has_jobs)) {
      lock.unlock();
      trim_backend();
      lock.lock();
      jobs.changed.wait(lock, has_jobs);
    }
    std::shared_ptr<CompileJob> next = std::move(jobs.jobs.front());
    jobs.jobs.pop_front();
    const bool puts_off = !has_idle_core() && next->put_off();
    if (!puts_off) jobs.compiling = next;
    lock.unlock();
    if (!puts_off) {
      delay();
      compile(jobs, next);
    }
    next.reset();  // without the lock: what a backend made may go with it
    lock.lock();
    jobs.changed.notify_all();
  }
}

// The lock is held.
void Queue::start_thread() {
  if (started || stopped || jobs.empty()) return;
  started = true;
  std::thread(work).detach();
}

}  // namespace

void enqueue_compile(std::shared_ptr<CompileJob> job) {
  Queue& jobs = queue();
  const std::lock_guard<std::mutex> lock(jobs.mutex);
  if (jobs.stopped) return;
  jobs.jobs.push_back(std::move(job));
  jobs.start_thread();
  jobs.changed.notify_all();
}

void resume_compiles() {
  Queue& jobs = queue();
  const std::lock_guard<std::mutex> lock(jobs.mutex);
  jobs.start_thread();
}

void stop_compiles() noexcept {
  Queue& jobs = queue();
  std::unique_lock<std::mutex> lock(jobs.mutex);
  jobs.stop();
  if (has_overdue_work()) return;
  jobs.changed.wait_for(lock, std::chrono::seconds(5), [&] { return !jobs.compiling; });
}

bool wait_for_compiles(std::optional<std::chrono::milliseconds> timeout) {
  Queue& jobs = queue();
  std::unique_lock<std::mutex> lock(jobs.mutex);
  jobs.start_thread();
  const auto idle = [&] { return jobs.jobs.empty() && !jobs.compiling; };
  if (timeout) return jobs.changed.wait_for(lock, *timeout, idle);
  jobs.changed.wait(lock, idle);
  return true;
}

}  // namespace torch_lazy
