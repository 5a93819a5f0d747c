#include "profile/event_log.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <mutex>
#include <utility>

#include "base/fork.h"

namespace torch_lazy {

std::atomic<bool> event_log_is_kept{false};

namespace {

struct Kept {
  std::mutex mutex;  // guards `log`
  EventLog log;

  Kept() {
    register_at_fork(
        LockOrder::kLeaf, [this] { mutex.lock(); },
        [this](bool in_child) { after_fork(in_child); });
  }

  // A child has nobody who would read its log.
  void after_fork(bool in_child) {
    if (in_child) {
      event_log_is_kept = false;
      log = {};
    }
    mutex.unlock();
  }
};

Kept& kept() {
  static Kept* const instance = new Kept;
  return *instance;
}

// Made when the library is loaded: what is made during a fork is not covered by it.
[[maybe_unused]] Kept& event_log_made_at_load = kept();

}  // namespace

bool start_event_log() {
  return !event_log_is_kept.exchange(true);
}

EventLog stop_event_log() {
  const std::lock_guard<std::mutex> lock(kept().mutex);
  event_log_is_kept = false;
  return std::exchange(kept().log, {});
}

void log_event(ProfileEvent event) {
  event.thread = syscall(SYS_gettid);
  const std::lock_guard<std::mutex> lock(kept().mutex);
  if (!is_logging()) return;
  EventLog& log = kept().log;
  if (log.events.size() < kMostEvents)
    log.events.push_back(std::move(event));
  else
    ++log.left_out;
}

}  // namespace torch_lazy
