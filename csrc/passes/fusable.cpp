#include "passes/fusable.h"

#include <algorithm>

#include "ir/node_operator.h"
#include "passes/graph_builder.h"

namespace torch_lazy {

bool is_fusable(CoreKind kind) {
  switch (kind) {
    case CoreKind::kPointwise:
    case CoreKind::kCopy:
    case CoreKind::kFill:
    case CoreKind::kArange:
    case CoreKind::kReduction:
    case CoreKind::kScan:
    case CoreKind::kGather:
    case CoreKind::kJoin:
      return true;
    default:
      return false;
  }
}

const CoreOperator* fusable_operator(const torch::jit::Node* node) {
  const CoreOperator* const core = find_core_operator(operator_name(node));
  if (!core || !is_fusable(core->kind)) return nullptr;
  return core->kind != CoreKind::kScan || node->hasAttribute(kKernelAttribute) ? core : nullptr;
}

bool is_for_kernels(const torch::jit::Node& node) {
  const CoreOperator* const core = fusable_operator(&node);
  if (!core || node.hasAttribute(kLibraryAttribute)) return false;
  const auto has_kernels = [](const torch::jit::Value* value) {
    if (value->type()->kind() != c10::TypeKind::TensorType) return true;
    if (const auto number = constant_number(value)) return primitive::has_type(number->type());
    if (!has_complete_type(value)) return false;
    const TensorInfo info = info_of(value);
    return primitive::has_type(info.dtype) && info.elements() > 0;
  };
  if (!std::ranges::all_of(node.inputs(), has_kernels) ||
      !std::ranges::all_of(node.outputs(), has_kernels))
    return false;
  return core->kind != CoreKind::kPointwise || !primitive::may_raise_on_integers(core->op) ||
         c10::isFloatingType(info_of(node.output()).dtype);
}

}  // namespace torch_lazy
