#include "passes/decompose.h"

#include <vector>

#include "ir/node_operator.h"
#include "passes/dead_code.h"
#include "passes/decompose_rules.h"

namespace torch_lazy {

using torch::jit::Graph;
using torch::jit::Node;

namespace {

// What a list is unpacked from is replaced together with the unpacking.
bool stays_whole(const Node& node) {
  const Node& call = node.kind() == c10::prim::ListUnpack ? *node.input()->node() : node;
  return call.hasAttribute(kLibraryAttribute);
}

}  // namespace

std::shared_ptr<Graph> decompose(std::shared_ptr<Graph> graph, c10::IntArrayRef input_offsets) {
  GraphBuilder builder(*graph, input_offsets);
  const std::vector<Node*> nodes(graph->nodes().begin(), graph->nodes().end());
  std::vector<Node*> folded;
  // One after the other, nodes go to the end of the graph or what they become does, in this order:
  // to append is cheap however many there are.
  for (Node* node : nodes) {
    bool replaced = false;
    if (node->kind() == c10::prim::Constant || node->kind() == c10::prim::ListConstruct ||
        node->kind() == c10::prim::AutogradZero || node->kind() == c10::aten::ScalarImplicit)
      folded.push_back(node);
    else if (stays_whole(*node))
      replaced = false;
    else if (node->kind() == c10::prim::ListUnpack)
      replaced = decompose_foreach(builder, node) || decompose_fused_optimizer(builder, node);
    else
      replaced = decompose_node(builder, node);
    if (!replaced) node->moveBefore(graph->return_node());
  }
  builder.order_constants();
  // Arguments that only the replaced nodes had; a list before its elements.
  destroy_unused(folded);
  return graph;
}

}  // namespace torch_lazy
