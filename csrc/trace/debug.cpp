#include "trace/debug.h"

#include <fmt/format.h>

#include "base/config.h"
#include "base/debug.h"
#include "ops/operator_info.h"

namespace torch_lazy {
void debug_window(std::string_view cause, const char* state, const Tape& tape) {
  if (config().debug < kDebugWindows || tape.empty()) return;
  debug_print(fmt::format("{} window: {} operations from {}, cut by {}", state, tape.size(),
                          to_string(tape.entry(0).location), cause));
}

void debug_operation(const OperatorInfo& op, LocationId location, bool deferred) {
  if (config().debug < kDebugOperations) return;
  debug_print(fmt::format("  {} {} # {}", deferred ? "deferred" : "run now ", op.name,
                          to_string(location)));
}

}  // namespace torch_lazy
