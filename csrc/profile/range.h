// A stretch of a thread's time that profilers show: PyTorch's, and torch.lazy.profile().
//
//   std::optional<Range> range;
//   if (is_profiled()) range.emplace(ProfileEvent{...});
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <string>
#include <utility>

#include "profile/event.h"
#include "profile/event_log.h"

namespace torch_lazy {

// Whether PyTorch's profiler, or another observer of its operators, watches the calling thread. As
// the dispatcher asks for each operator: a third of what at::hasCallbacks() takes.
inline bool is_observed() {
  return at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION).has_value();
}

// Whether any profiler wants to know what the calling thread does. Some nanoseconds, so it is asked
// once for a window and once for a flush, and never for an operation that is recorded.
inline bool is_profiled() {
  return is_logging() || is_observed();
}

// From its beginning to its end, also where an exception ends it. Profilers must not take Python's
// GIL for it, and PyTorch's do not: the recording lock may be held.
class Range {
 public:
  // `inputs` are the tensors that it works on, for shapes; they are read here only.
  explicit Range(ProfileEvent event, c10::ArrayRef<c10::IValue> inputs = {});
  ~Range();
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  const std::string name_;  // PyTorch's profiler points to it
  ProfileEvent event_;
  at::RecordFunction function_;  // ends first
};

// Ranges of no length: something happened here. Out of line, and out of the way of what records.
[[gnu::cold]] void mark(ProfileEvent event);
// An operation was recorded and did not run: for PyTorch's profiler, which has a range of its call.
[[gnu::cold]] void mark_deferred();

}  // namespace torch_lazy
