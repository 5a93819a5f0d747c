// The operator that the calling thread runs at the call, for devices that tell of failures late
// (backend/late_failure.h).
#pragma once

#include "backend/execution_device.h"
#include "ops/operator_info.h"

namespace torch_lazy {

// The scope of its run; nothing on the CPU.
class DispatchedOperation {
 public:
  explicit DispatchedOperation(const OperatorInfo& op) {
    if (!execution_device().is_cpu()) [[unlikely]]
      enter(op);
  }
  ~DispatchedOperation() {
    if (entered_) [[unlikely]]
      leave();
  }
  DispatchedOperation(const DispatchedOperation&) = delete;
  DispatchedOperation& operator=(const DispatchedOperation&) = delete;

 private:
  void enter(const OperatorInfo& op);
  void leave();

  bool entered_ = false;
  const OperatorInfo* outer_ = nullptr;
};

// Lets devices ask which operation a thread works for.
void register_submission_names();

}  // namespace torch_lazy
