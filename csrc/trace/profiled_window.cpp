#include "trace/profiled_window.h"

#include <utility>

#include "memory/caching_allocator.h"

namespace torch_lazy {

ProfileEvent sync_event(const Flush& flush) {
  ProfileEvent event{EventKind::kSync, std::string(flush.name())};
  event.lines = {flush.location};
  return event;
}

ProfileEvent flush_event(const Flush& flush, const Tape& tape) {
  ProfileEvent event{EventKind::kFlush, std::string(flush.name())};
  if (!tape.empty()) event.lines = {tape.entry(tape.size() - 1).location};
  return event;
}

ProfileEvent run_event(const Tape& tape, size_t operations, const CompiledTrace::Version* version) {
  ProfileEvent event{EventKind::kRun, version ? "window" : "window_by_operation"};
  event.lines = {tape.entry(0).location};
  event.operations = int64_t(operations);
  if (version) event.graph = version->hash.hex();
  return event;
}

ProfileEvent guard_failure_event(const Matcher& matcher, const Tape& tape) {
  ProfileEvent event{EventKind::kGuardFailure, matcher.why_not(tape)};
  event.lines = {tape.entry(tape.size() - 1).location};
  return event;
}

void log_window(const Window& window, const Flush& flush, WindowState state,
                const CompiledTrace::Version* version) {
  ProfileEvent event{EventKind::kWindow, std::string(name(state))};
  event.lines = {window.tape().entry(0).location};
  event.operations = int64_t(window.tape().size());
  event.bytes = memory_statistics().allocated;
  event.reason = flush.name();
  if (version) event.graph = version->hash.hex();
  event.begin = window.opened();
  event.end = ProfileEvent::Clock::now();
  log_event(std::move(event));
}

}  // namespace torch_lazy
