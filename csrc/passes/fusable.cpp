#include "passes/fusable.h"

#include "ir/node_operator.h"

namespace torch_lazy {

bool is_fusable(CoreKind kind) {
  switch (kind) {
    case CoreKind::kPointwise:
    case CoreKind::kCopy:
    case CoreKind::kFill:
    case CoreKind::kArange:
    case CoreKind::kReduction:
    case CoreKind::kGather:
    case CoreKind::kJoin:
      return true;
    default:
      return false;
  }
}

const CoreOperator* fusable_operator(const torch::jit::Node* node) {
  const CoreOperator* const core = find_core_operator(operator_name(node));
  return core && is_fusable(core->kind) ? core : nullptr;
}

}  // namespace torch_lazy
