#include "ir/node_operator.h"

namespace torch_lazy {

const c10::Symbol kOverloadAttribute = c10::Symbol::attr("overload");

void choose_overload(torch::jit::Node& node, const c10::FunctionSchema& schema) {
  const torch::jit::Operator* const found = node.maybeOperator();
  if (!found || found->schema().overload_name() != schema.overload_name())
    node.s_(kOverloadAttribute, schema.overload_name());
}

std::optional<c10::OperatorHandle> find_operator(const torch::jit::Node* node) {
  if (node->kind().is_prim()) return std::nullopt;
  std::string overload;
  if (node->hasAttribute(kOverloadAttribute)) {
    overload = node->s(kOverloadAttribute);
  } else if (const c10::FunctionSchema* schema = node->maybeSchema()) {
    overload = schema->overload_name();
  } else {
    return std::nullopt;
  }
  return c10::Dispatcher::singleton().findSchema({node->kind().toQualString(), overload});
}

c10::OperatorHandle operator_of(const torch::jit::Node* node) {
  const auto handle = find_operator(node);
  TORCH_CHECK(handle.has_value(), "no operator accepts the inputs of the node ", *node);
  return *handle;
}

std::string operator_name(const torch::jit::Node* node) {
  const auto handle = find_operator(node);
  if (!handle) return node->kind().toQualString();
  const c10::OperatorName& name = handle->operator_name();
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

}  // namespace torch_lazy
