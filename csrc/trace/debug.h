// What TORCH_LAZY_DEBUG shows of windows (1) and operations (5).
#pragma once

#include "base/config.h"
#include "base/debug.h"
#include "tape/tape.h"
#include "trace/flush_reason.h"
#include "trace/matcher.h"

namespace torch_lazy {

void debug_window(Flush flush, WindowState state, const Tape& tape);
// Why the operation that is open on the tape does not follow the known traces.
void debug_guard_failure(const Matcher& matcher, const Tape& tape);
void print_operation(const OperatorInfo& op, LocationId location, bool deferred);
inline void debug_operation(const OperatorInfo& op, LocationId location, bool deferred) {
  if (config().debug >= kDebugOperations) print_operation(op, location, deferred);
}

}  // namespace torch_lazy
