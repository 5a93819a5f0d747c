#include "graph/decompose.h"

#include <vector>

#include "graph/decompose_rules.h"
#include "ir/node_operator.h"

namespace torch_lazy {

using torch::jit::Graph;
using torch::jit::Node;

std::shared_ptr<Graph> decompose(std::shared_ptr<Graph> graph, c10::IntArrayRef input_offsets) {
  GraphBuilder builder(*graph, input_offsets);
  const std::vector<Node*> nodes(graph->nodes().begin(), graph->nodes().end());
  std::vector<Node*> folded;
  for (Node* node : nodes) {
    if (node->kind() == c10::prim::Constant || node->kind() == c10::prim::ListConstruct ||
        node->kind() == c10::prim::AutogradZero || node->kind() == c10::aten::ScalarImplicit)
      folded.push_back(node);
    else if (node->kind() == c10::prim::ListUnpack)
      decompose_foreach(builder, node);
    else
      decompose_node(builder, node);
  }
  // Arguments that only the replaced nodes had; a list before its elements.
  for (size_t i = folded.size(); i-- > 0;)
    if (!folded[i]->hasUses()) folded[i]->destroy();
  return graph;
}

bool has_decomposition(const std::string& operator_name) {
  return find_rule(operator_name) != nullptr;
}

}  // namespace torch_lazy
