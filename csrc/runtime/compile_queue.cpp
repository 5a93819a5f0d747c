#include "runtime/compile_queue.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "backend/registry.h"
#include "base/config.h"
#include "runtime/compile_policy.h"
#include "runtime/compiled_trace.h"

namespace torch_lazy {
namespace {

// Global: one queue a process. Never destroyed, because its thread may outlive static destructors.
struct Queue {
  std::mutex mutex;  // guards everything below
  std::condition_variable changed;
  std::deque<std::shared_ptr<CompiledTrace>> jobs;
  bool compiling = false;
  bool started = false;
  bool stopped = false;
};

std::atomic<uint64_t> generation{1};

Queue*& queue_slot() {
  static Queue* slot = new Queue;
  return slot;
}

Queue& queue() {
  return *queue_slot();
}

// A child has no compile thread, and the lock may have been held: it starts with an empty queue.
// Traces that were on their way stay warm there; what is ready stays ready.
void register_fork_handler() {
  pthread_atfork(nullptr, nullptr, [] {
    queue_slot() = new Queue;
    ++generation;
  });
}

// What a compile costs is paid by the script where they share a core, sooner or later; how soon is
// a choice. By the scheduler's weights (1024 at 0, 655 at 2, 36 at 15):
// With cores to share, a thirtieth of one where all are busy: a team of threads waits for its
// slowest, so every step would pay for more.
constexpr int kNiceness = 15;
// On one core two fifths of it: what was compiled pays for the rest.
constexpr int kNicenessOnOneCore = 2;

void lower_priority() {
  // Not SCHED_IDLE: on a busy machine that thread could be stopped for long with a lock in hand.
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)),
              has_one_core() ? kNicenessOnOneCore : kNiceness);
}

// Longer than the pauses between the compiles of a script that has begun to repeat its steps.
constexpr std::chrono::milliseconds kPause{100};

// A backend that cannot be made, which its compiles have said, has nothing to give back.
void trim_backend() noexcept {
  try {
    backend_by_name(backend_name()).trim();
  } catch (const std::exception&) {
  }
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
    auto trace = std::move(jobs.jobs.front());
    jobs.jobs.pop_front();
    jobs.compiling = true;
    lock.unlock();
    trace->compile();
    trace.reset();
    lock.lock();
    jobs.compiling = false;
    jobs.changed.notify_all();
  }
}

}  // namespace

void enqueue_compile(std::shared_ptr<CompiledTrace> trace) {
  static const bool registered = (register_fork_handler(), true);
  static_cast<void>(registered);
  Queue& jobs = queue();
  const std::lock_guard<std::mutex> lock(jobs.mutex);
  if (jobs.stopped) return;
  jobs.jobs.push_back(std::move(trace));
  if (!jobs.started) {
    jobs.started = true;
    std::thread(work).detach();
  }
  jobs.changed.notify_all();
}

uint64_t compile_queue_generation() {
  return generation;
}

void stop_compiles() noexcept {
  Queue& jobs = queue();
  std::unique_lock<std::mutex> lock(jobs.mutex);
  jobs.stopped = true;
  jobs.jobs.clear();
  jobs.changed.wait_for(lock, std::chrono::seconds(5), [&] { return !jobs.compiling; });
}

bool wait_for_compiles(std::optional<std::chrono::milliseconds> timeout) {
  Queue& jobs = queue();
  std::unique_lock<std::mutex> lock(jobs.mutex);
  const auto idle = [&] { return jobs.jobs.empty() && !jobs.compiling; };
  if (timeout) return jobs.changed.wait_for(lock, *timeout, idle);
  jobs.changed.wait(lock, idle);
  return true;
}

}  // namespace torch_lazy
