#include "trace/debug.h"

#include <fmt/format.h>

#include <cstdio>

#include "runtime/config.h"
#include "trace/operator_info.h"

namespace torch_lazy {
namespace {

// Never raises, unlike fmt::print: nobody may be reading.
void print(const std::string& line) {
  std::fputs(line.c_str(), stderr);
}

}  // namespace

void debug_window(const std::string& cause, const char* state, const Tape& tape) {
  if (config().debug < kDebugWindows || tape.empty()) return;
  print(fmt::format("[torch_lazy] {} window: {} operations from {}, cut by {}\n", state,
                    tape.size(), to_string(tape.entry(0).location), cause));
}

void debug_operation(const OperatorInfo& op, LocationId location, bool deferred) {
  if (config().debug < kDebugOperations) return;
  print(fmt::format("[torch_lazy]   {} {} # {}\n", deferred ? "deferred" : "run now ", op.name,
                    to_string(location)));
}

}  // namespace torch_lazy
