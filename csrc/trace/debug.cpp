#include "trace/debug.h"

#include <fmt/format.h>

#include "ops/operator_info.h"

namespace torch_lazy {

void debug_window(Flush flush, WindowState state, const Tape& tape) {
  if (config().debug < kDebugWindows) return;
  debug_print(fmt::format("{} window: {} operations from {}, flushed by {}", name(state),
                          tape.size(), to_string(tape.entry(0).location), flush.name()));
}

void debug_guard_failure(const Matcher& matcher, const Tape& tape) {
  if (config().debug >= kDebugWindows) debug_print(matcher.why_not(tape));
}

void print_operation(const OperatorInfo& op, LocationId location, bool deferred) {
  debug_print(fmt::format("  {} {} # {}", deferred ? "deferred" : "eager   ", op.name,
                          to_string(location)));
}

}  // namespace torch_lazy
