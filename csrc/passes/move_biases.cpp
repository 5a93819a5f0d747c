#include "passes/move_biases.h"

#include <algorithm>
#include <vector>

#include "passes/fusable.h"
#include "passes/graph_builder.h"
#include "passes/simplify_algebra.h"
#include "passes/simplify_gathers.h"

namespace torch_lazy {
namespace {

using torch::jit::Node;
using torch::jit::Use;
using torch::jit::Value;

// A gather reads memory, not what another kernel computes; but one that moves before the sum reads
// the product.
bool may_move_before_sum(const Use& gather) {
  return gather.offset == 0 && has_complete_type(gather.user->output()) &&
         takes_few_elements(*gather.user);
}

bool is_read_by_kernels_only(const Value* value) {
  return value->hasUses() &&
         std::all_of(value->uses().begin(), value->uses().end(), [](const Use& use) {
           if (use.user->kind() == c10::prim::Return ||
               use.user->kind() == c10::prim::ListConstruct)
             return false;
           if (use.user->kind() == c10::aten::as_strided)
             return is_read_by_kernels_only(use.user->output());
           const CoreOperator* const core = fusable_operator(use.user);
           return core && (core->kind != CoreKind::kGather || may_move_before_sum(use));
         });
}

bool can_move(const Node& node) {
  if (!is_plain_addmm(node) || node.hasAttribute(kLibraryAttribute)) return false;
  const TensorInfo made = info_of(node.output());
  if (made.dtype != c10::ScalarType::Float && made.dtype != c10::ScalarType::Double) return false;
  return made.elements() > 0 && is_read_by_kernels_only(node.output());
}

void move_gathers_before(Value* sum, GraphBuilder& builder) {
  const torch::jit::use_list uses = sum->uses();
  for (const Use& use : uses) {
    Value* const moved = gather_of_operands(builder, use.user);
    if (!moved) continue;
    use.user->output()->replaceAllUsesWith(moved);
    use.user->destroy();
  }
}

}  // namespace

std::shared_ptr<torch::jit::Graph> move_biases(std::shared_ptr<torch::jit::Graph> graph,
                                               c10::IntArrayRef input_offsets) {
  std::vector<Node*> found;
  for (Node* const node : graph->nodes())
    if (can_move(*node)) found.push_back(node);
  if (found.empty()) return graph;
  GraphBuilder builder(*graph, input_offsets);
  for (Node* const node : found) {
    builder.insert_before(node);
    const TensorInfo type = info_of(node->output());
    Value* const product = builder.call("aten::mm", "", {node->input(1), node->input(2)}, type);
    Value* const sum = builder.pointwise("aten::add", "Tensor", {product, node->input(0)},
                                         type.dtype, {builder.scalar(1)});
    node->output()->replaceAllUsesWith(sum);
    node->destroy();
    move_gathers_before(sum, builder);
  }
  builder.order_constants();
  return graph;
}

}  // namespace torch_lazy
