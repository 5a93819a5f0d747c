#include "passes/dead_code.h"

namespace torch_lazy {
namespace {

using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Use;
using torch::jit::Value;

// Whether nothing reads what a node makes, but for the unpackings of its lists, which are added.
bool is_unread(const Node& node, std::vector<Node*>& unpackings) {
  for (const Value* output : node.outputs())
    for (const Use& use : output->uses()) {
      if (use.user->kind() != c10::prim::ListUnpack || use.user->hasUses()) return false;
      unpackings.push_back(use.user);
    }
  return true;
}

}  // namespace

void remove_dead_code(Graph& graph, const std::function<bool(const Node&)>& removable) {
  std::vector<Node*> unpackings;
  for (auto next = graph.nodes().rbegin(); next != graph.nodes().rend();) {
    Node* const node = *next;
    ++next;
    unpackings.clear();
    if (node->kind() == c10::prim::ListUnpack || !is_unread(*node, unpackings) || !removable(*node))
      continue;
    for (Node* const unpacking : unpackings) unpacking->destroy();
    node->destroy();
  }
}

void destroy_unused(const std::vector<Node*>& nodes) {
  for (size_t i = nodes.size(); i-- > 0;)
    if (!nodes[i]->hasUses()) nodes[i]->destroy();
}

}  // namespace torch_lazy
