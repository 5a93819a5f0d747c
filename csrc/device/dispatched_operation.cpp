#include "device/dispatched_operation.h"

#include <torch/csrc/autograd/engine.h>

#include <utility>

#include "backend/late_failure.h"
#include "profile/running_window.h"
#include "tape/operation_location.h"

namespace torch_lazy {
namespace {

constinit thread_local const OperatorInfo* operator_of_thread = nullptr;

// An operator that runs at the call may have to wait for a window's run, and is never inside of
// one.
SubmittedOperation current_operation() {
  const RunningWindow* const window = RunningWindow::of_thread();
  const Tape::Entry* const entry = window ? window->entered() : nullptr;
  if (entry) return {&entry->op->name, entry->location};
  if (!operator_of_thread) return {};
  const bool in_backward = torch::autograd::get_current_graph_task_id() != -1;
  return {&operator_of_thread->name, current_operation_location(in_backward)};
}

}  // namespace

void DispatchedOperation::enter(const OperatorInfo& op) {
  outer_ = std::exchange(operator_of_thread, &op);
  entered_ = true;
}

void DispatchedOperation::leave() {
  operator_of_thread = outer_;
}

void register_submission_names() {
  set_submission_names(
      {&current_operation, [](uint64_t location) { return to_string(LocationId(location)); }});
}

}  // namespace torch_lazy
