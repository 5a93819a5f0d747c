#include "base/fork.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <utility>
#include <vector>

namespace torch_lazy {
namespace {

struct Handler {
  LockOrder order;
  std::function<void()> before;
  std::function<void(bool)> after;
  const Handler* next;
};

// A list that only grows and is read without a lock: a thread may register under any of the locks
// that a fork is about to take.
constinit std::atomic<const Handler*> handlers{nullptr};

// Passes of a compile take milliseconds, and on a busy machine several times that.
constinit std::atomic<std::chrono::milliseconds> patience{std::chrono::seconds(5)};

struct Forks {
  std::mutex mutex;                   // guards everything below; held over a fork
  std::condition_variable changed;    // `working` has fallen, or `wanted` has
  int working = 0;                    // threads in pausable work that are not at a safe point
  int overdue = 0;                    // of those, the ones that are not waited for
  std::atomic<int> wanted{0};         // threads that are about to fork; written under the mutex
  std::vector<const Handler*> taken;  // by the fork under way, in order
  bool at_safe_point = true;          // the fork under way, or in a child the last one
  std::atomic<uint32_t> generation{0};
};

// Never destroyed: threads may fork while the process exits.
Forks& forks() {
  static auto* const instance = new Forks;
  return *instance;
}

thread_local int work_depth = 0;

void begin_work() {
  Forks& all = forks();
  std::unique_lock<std::mutex> lock(all.mutex);
  all.changed.wait(lock, [&] { return all.wanted == 0; });
  ++all.working;
}

void end_work() {
  Forks& all = forks();
  const std::lock_guard<std::mutex> lock(all.mutex);
  --all.working;
  if (all.wanted > 0) all.changed.notify_all();
}

void before_fork() {
  Forks& all = forks();
  std::unique_lock<std::mutex> lock(all.mutex);
  ++all.wanted;
  const int own = work_depth > 0 ? 1 : 0;
  all.changed.wait_for(lock, patience.load(), [&] { return all.working - all.overdue <= own; });
  all.at_safe_point = all.working <= own;
  lock.release();
  all.taken.clear();
  for (const Handler* handler = handlers; handler != nullptr; handler = handler->next)
    all.taken.push_back(handler);
  std::ranges::stable_sort(all.taken, {}, &Handler::order);
  for (const Handler* handler : all.taken) handler->before();
}

void after_fork(bool in_child) {
  Forks& all = forks();
  if (in_child) ++all.generation;
  for (auto handler = all.taken.rbegin(); handler != all.taken.rend(); ++handler)
    (*handler)->after(in_child);
  if (in_child) {
    // Other threads' waits ended with them.
    std::construct_at(&all.changed);
    all.working = work_depth > 0 ? 1 : 0;
    all.overdue = 0;
    all.wanted = 0;
  } else {
    --all.wanted;
    all.changed.notify_all();
  }
  all.mutex.unlock();
}

}  // namespace

void register_at_fork(LockOrder order, std::function<void()> before,
                      std::function<void(bool in_child)> after) {
  static const int registered = pthread_atfork(
      before_fork, [] { after_fork(false); }, [] { after_fork(true); });
  static_cast<void>(registered);
  auto* const handler = new Handler{order, std::move(before), std::move(after), handlers};
  while (!handlers.compare_exchange_weak(handler->next, handler)) {
  }
}

uint32_t fork_generation() {
  return forks().generation.load(std::memory_order_relaxed);
}

PausableWork::PausableWork() {
  if (work_depth == 0) begin_work();
  ++work_depth;
}

PausableWork::~PausableWork() {
  if (--work_depth == 0) end_work();
}

void safe_point_for_fork() {
  if (work_depth > 0) safe_point_for_fork_of_other_thread();
}

void safe_point_for_fork_of_other_thread() {
  if (forks().wanted.load(std::memory_order_relaxed) == 0) return;
  end_work();
  begin_work();
}

BlockedWork::BlockedWork() : depth_(std::exchange(work_depth, 0)) {
  if (depth_ > 0) end_work();
}

BlockedWork::~BlockedWork() {
  if (depth_ > 0) begin_work();
  work_depth = depth_;
}

OverdueWork::OverdueWork() {
  const std::lock_guard<std::mutex> lock(forks().mutex);
  ++forks().overdue;
  forks().changed.notify_all();
}

OverdueWork::~OverdueWork() {
  const std::lock_guard<std::mutex> lock(forks().mutex);
  --forks().overdue;
}

bool has_overdue_work() {
  const std::lock_guard<std::mutex> lock(forks().mutex);
  return forks().overdue > 0;
}

bool forked_at_safe_point() {
  return forks().at_safe_point;
}

void set_patience_of_forks(std::chrono::milliseconds wanted) {
  patience = wanted;
}

}  // namespace torch_lazy
