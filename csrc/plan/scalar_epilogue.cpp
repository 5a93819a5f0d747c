#include "plan/scalar_epilogue.h"

#include <c10/util/Exception.h>
#include <c10/util/accumulate.h>

#include <algorithm>

#include "passes/core_graph.h"

namespace torch_lazy {
namespace {

// Of another kernel, in the units of primitive::cost_of, which are vector instructions: starting
// it, and its loads and stores.
constexpr double kKernelCost = 1000;

// Of a polynomial as much as a vector's; an instruction occupies no unit for as long, and waits
// beside the next point's.
int scalar_cost(primitive::Op op) {
  const int cost = primitive::cost_of(op);
  return cost <= primitive::cost_of(primitive::Op::kDiv) ? 1 : cost;
}

bool is_pointwise(const CoreNode& node) {
  return node.kind == CoreKind::kPointwise || node.kind == CoreKind::kCopy;
}

Extents parallel_of(const FusionGroup& group) {
  Extents parallel;
  for (size_t d = 0; d < group.domain.size(); ++d)
    if (!group.reduced[d]) parallel.push_back(group.domain[d]);
  return parallel;
}

}  // namespace

NodeId costly_scalar_epilogue(const CoreGraph& graph, const FusionGroup& group, int lanes) {
  const Extents parallel = parallel_of(group);
  if (parallel.size() == group.domain.size()) return kNoId;
  double cost = 0;
  NodeId first = kNoId;
  for (size_t i = group.nodes.size(); i-- > 0;) {
    const CoreNode& node = graph.nodes[size_t(group.nodes[i])];
    if (!is_pointwise(node) || space_of(graph, node).sizes != parallel) break;
    if (node.kind == CoreKind::kPointwise) cost += scalar_cost(node.op);
    first = group.nodes[i];
  }
  TORCH_INTERNAL_ASSERT(first != group.nodes.front(), "a reduction comes before its results");
  const double points = double(c10::multiply_integers(parallel));
  return points * cost * (1 - 1.0 / lanes) > kKernelCost ? first : kNoId;
}

}  // namespace torch_lazy
