// What profiles show of windows, and where: all of it is called only where somebody is listening.
#pragma once

#include "profile/range.h"
#include "runtime/compiled_trace.h"
#include "trace/flush_reason.h"
#include "trace/matcher.h"
#include "trace/window.h"

namespace torch_lazy {

// The program waits, at the line in the flush.
ProfileEvent sync_event(const Flush& flush);
// The window ends without that.
ProfileEvent flush_event(const Flush& flush, const Tape& tape);
// The first operations of the tape run: by an executable, or one by one where there is none.
ProfileEvent run_event(const Tape& tape, size_t operations, const CompiledTrace::Version* version);
// The operation that is open on the tape left the known traces.
ProfileEvent guard_failure_event(const Matcher& matcher, const Tape& tape);
// Logs a whole window, which ends now. `version`: by which it ran; null where it had none.
void log_window(const Window& window, const Flush& flush, WindowState state,
                const CompiledTrace::Version* version);

}  // namespace torch_lazy
