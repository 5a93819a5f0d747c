#include "runtime/compile_queue.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "backend/registry.h"
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
};

Queue*& queue_slot() {
  static Queue* slot = new Queue;
  return slot;
}

Queue& queue() { return *queue_slot(); }

// A child has no compile thread, and the lock may have been held: it starts with an empty queue.
// Traces that were on their way stay warm there; what is ready stays ready.
void register_fork_handler() {
  pthread_atfork(nullptr, nullptr, [] { queue_slot() = new Queue; });
}

void lower_priority() {
  sched_param none{};
  pthread_setschedparam(pthread_self(), SCHED_IDLE, &none);
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 19);
}

void work() {
  lower_priority();
  Queue& jobs = queue();
  std::unique_lock<std::mutex> lock(jobs.mutex);
  for (;;) {
    jobs.changed.wait(lock, [&] { return !jobs.jobs.empty(); });
    auto trace = std::move(jobs.jobs.front());
    jobs.jobs.pop_front();
    jobs.compiling = true;
    lock.unlock();
    trace->compile(backend_by_name("interpreter"));
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
  jobs.jobs.push_back(std::move(trace));
  if (!jobs.started) {
    jobs.started = true;
    std::thread(work).detach();
  }
  jobs.changed.notify_all();
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
