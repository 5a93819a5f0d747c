#include "profile/range.h"

#include <unordered_map>

namespace torch_lazy {
namespace {

using Arguments = std::unordered_map<std::string, c10::IValue>;

// What PyTorch's profiler writes beside shapes.
Arguments arguments_of(const ProfileEvent& event) {
  Arguments arguments;
  if (!event.lines.empty()) {
    std::string lines;
    for (const LocationId line : event.lines)
      lines += (lines.empty() ? "" : ", ") + to_string(line);
    arguments.emplace("lines", lines);
  }
  if (event.operations > 0) arguments.emplace("operations", event.operations);
  if (event.bytes > 0) arguments.emplace("bytes", event.bytes);
  if (!event.graph.empty()) arguments.emplace("graph", event.graph);
  if (event.kind == EventKind::kGuardFailure) arguments.emplace("why", event.name);
  return arguments;
}

}  // namespace

Range::Range(ProfileEvent event, c10::ArrayRef<c10::IValue> inputs)
    : name_(is_observed() ? range_name(event) : std::string()),
      event_(std::move(event)),
      function_(at::RecordScope::FUNCTION) {
  if (function_.isActive()) {
    const std::string_view name = name_;
    if (function_.needsInputs()) {
      const Arguments arguments = arguments_of(event_);
      function_.before(name, inputs, &arguments);
    } else {
      function_.before(name);
    }
  }
  event_.begin = ProfileEvent::Clock::now();
}

Range::~Range() {
  if (!is_logging()) return;
  event_.end = ProfileEvent::Clock::now();
  log_event(std::move(event_));
}

void mark(ProfileEvent event) {
  const Range range(std::move(event));
}

void mark_deferred() {
  at::RecordFunction function(at::RecordScope::FUNCTION);
  if (function.isActive()) function.before("torch_lazy::deferred");
}

}  // namespace torch_lazy
