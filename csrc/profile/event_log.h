// What happened since torch.lazy.profile() was entered.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/api.h"
#include "profile/event.h"

namespace torch_lazy {

// At most so many events are kept, in Python about 700 MB; a profile of one step has some hundreds.
constexpr size_t kMostEvents = 1'000'000;

struct EventLog {
  std::vector<ProfileEvent> events;  // in the order in which they ended
  int64_t left_out = 0;              // that came after kMostEvents others
};

// One log a process, and none in a forked child. False where it is kept already.
TORCH_LAZY_MODULE_API bool start_event_log();
// Returns what was kept, nothing where no log was.
TORCH_LAZY_MODULE_API EventLog stop_event_log();

extern std::atomic<bool> event_log_is_kept;
// Whether a log is kept now: one load.
inline bool is_logging() {
  return event_log_is_kept.load(std::memory_order_relaxed);
}
// Adds an event of the calling thread, where a log is kept. Any thread; takes a leaf lock.
void log_event(ProfileEvent event);

}  // namespace torch_lazy
