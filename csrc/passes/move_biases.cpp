#include "passes/move_biases.h"

#include <algorithm>
#include <vector>

#include "passes/fusable.h"
#include "passes/graph_builder.h"
#include "passes/simplify_algebra.h"

namespace torch_lazy {
namespace {

using torch::jit::Node;
using torch::jit::Use;
using torch::jit::Value;

// A gather reads memory, not what another kernel computes.
bool is_read_by_kernels_only(const Value* value) {
  return value->hasUses() &&
         std::all_of(value->uses().begin(), value->uses().end(), [](const Use& use) {
           if (use.user->kind() == c10::prim::Return ||
               use.user->kind() == c10::prim::ListConstruct)
             return false;
           if (use.user->kind() == c10::aten::as_strided)
             return is_read_by_kernels_only(use.user->output());
           const CoreOperator* const core = fusable_operator(use.user);
           return core && core->kind != CoreKind::kGather;
         });
}

bool can_move(const Node& node) {
  if (!is_plain_addmm(node) || node.hasAttribute(kLibraryAttribute)) return false;
  const TensorInfo made = info_of(node.output());
  if (made.dtype != c10::ScalarType::Float && made.dtype != c10::ScalarType::Double) return false;
  return made.elements() > 0 && is_read_by_kernels_only(node.output());
}

}  // namespace

std::shared_ptr<torch::jit::Graph> move_biases(std::shared_ptr<torch::jit::Graph> graph) {
  std::vector<Node*> found;
  for (Node* const node : graph->nodes())
    if (can_move(*node)) found.push_back(node);
  if (found.empty()) return graph;
  GraphBuilder builder(*graph);
  for (Node* const node : found) {
    builder.insert_before(node);
    const TensorInfo type = info_of(node->output());
    Value* const product = builder.call("aten::mm", "", {node->input(1), node->input(2)}, type);
    Value* const sum = builder.pointwise("aten::add", "Tensor", {product, node->input(0)},
                                         type.dtype, {builder.scalar(1)});
    node->output()->replaceAllUsesWith(sum);
    node->destroy();
  }
  builder.order_constants();
  return graph;
}

}  // namespace torch_lazy
