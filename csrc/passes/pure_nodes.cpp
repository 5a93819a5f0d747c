#include "passes/pure_nodes.h"

#include "ir/node_operator.h"
#include "ops/effects.h"
#include "passes/graph_builder.h"

namespace torch_lazy {

using torch::jit::Node;

bool is_prim(const Node& node) {
  return node.kind() == c10::prim::Constant || node.kind() == c10::prim::ListConstruct ||
         node.kind() == c10::prim::ListUnpack || node.kind() == c10::prim::AutogradZero ||
         node.kind() == c10::aten::ScalarImplicit;
}

namespace {

// Division of integers raises where the divisor is 0; of floating numbers never, though they share
// their operators.
bool is_safe_division(const Node& node) {
  if (node.kind() != c10::aten::div && node.kind() != c10::aten::remainder &&
      node.kind() != c10::aten::fmod)
    return false;
  if (!has_complete_type(node.output())) return false;
  if (c10::isFloatingType(info_of(node.output()).dtype)) return true;
  const auto divisor = constant_number(node.input(1));
  return divisor && divisor->toDouble() != 0;
}

}  // namespace

bool is_pure(const Node& node) {
  if (is_prim(node)) return true;
  const auto handle = find_operator(&node);
  if (!handle) return false;
  const Effects& effects = effects_of(*handle);
  if (effects.pure()) return true;
  return effects.known && !effects.writes_any() && !effects.random && is_safe_division(node);
}

}  // namespace torch_lazy
