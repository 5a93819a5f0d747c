#include "ir/verify_graph.h"

#include <torch/csrc/jit/ir/ir.h>

#include "ir/node_operator.h"
#include "ir/print.h"

namespace torch_lazy {
namespace {

using torch::jit::Node;
using torch::jit::Value;

void verify_type(const Value& value, const std::string& where) {
  const auto tensor = value.type()->cast<c10::TensorType>();
  if (!tensor || tensor->isComplete()) return;
  TORCH_CHECK(tensor->undefined().value_or(false), "%", value.debugName(), " of ", where,
              " has no complete type: ", *tensor);
}

bool known_without_operator(const Node& node) {
  return node.kind() == c10::prim::Constant || node.kind() == c10::prim::ListConstruct ||
         node.kind() == c10::prim::ListUnpack || node.kind() == c10::prim::AutogradZero ||
         node.kind() == c10::aten::ScalarImplicit;
}

void verify_node(const Node& node) {
  std::string where = operator_name(&node);
  if (const std::string line = recorded_at(node); !line.empty()) where += " (" + line + ")";
  TORCH_CHECK(node.blocks().empty(), where, " has blocks");
  if (!known_without_operator(node)) {
    const auto handle = find_operator(&node);
    TORCH_CHECK(handle.has_value(), where, " is no operator with these inputs");
    TORCH_CHECK(handle->schema().returns().size() == node.outputs().size(), where, " has ",
                node.outputs().size(), " outputs, its schema says ",
                handle->schema().returns().size());
  }
  TORCH_CHECK(node.kind() != c10::prim::Constant || node.hasAttribute(c10::attr::value) ||
                  node.output()->type()->kind() == c10::TypeKind::NoneType,
              where, " has no value");
  if (node.kind() == c10::prim::AutogradZero) return;  // undefined whatever its type says
  for (const Value* output : node.outputs()) verify_type(*output, where);
}

}  // namespace

void verify_graph(const torch::jit::Graph& graph) {
  graph.lint();
  for (const Value* input : graph.inputs()) verify_type(*input, "the graph's inputs");
  for (const Node* node : graph.nodes()) verify_node(*node);
  for (const Value* output : graph.outputs())
    TORCH_CHECK(output->type()->kind() == c10::TypeKind::TensorType, "graph output %",
                output->debugName(), " is no tensor but ", *output->type());
}

}  // namespace torch_lazy
