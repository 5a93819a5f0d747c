#include "trace/flush_reason.h"

#include <array>

#include "ops/operator_info.h"

namespace torch_lazy {
namespace {

// By FlushReason.
constexpr std::array<std::string_view, 19> kReasonNames{
    "operator",
    "copy to cpu",
    "synchronize",
    "storage needed",
    "set_",
    "storage taken over",
    "export of memory",
    "exported memory",
    "backward ends",
    "global state changed",
    "another device or stream",
    "operations limit",
    "bytes limit",
    "period",
    "branch",
    "change",
    "used by another thread",
    "thread ends",
    "operation raised",
};
static_assert(kReasonNames.size() == size_t(FlushReason::kOperationRaised) + 1);

// By WindowState.
constexpr std::array<std::string_view, 4> kStateNames{"cold", "warm", "hot", "guard failed"};
static_assert(kStateNames.size() == size_t(WindowState::kGuardFailed) + 1);

}  // namespace

std::string_view Flush::name() const {
  return op ? std::string_view(op->name) : kReasonNames[size_t(reason)];
}

std::string_view name(WindowState state) {
  return kStateNames[size_t(state)];
}

}  // namespace torch_lazy
