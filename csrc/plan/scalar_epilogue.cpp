#include "plan/scalar_epilogue.h"

#include <c10/util/accumulate.h>

#include <algorithm>

#include "passes/core_graph.h"

namespace torch_lazy {
namespace {

// Of another kernel, in the units of primitive::cost_of, which are vector instructions: starting
// it, and its loads and stores.
constexpr double kKernelCost = 1000;

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
    if (node.kind == CoreKind::kPointwise) cost += primitive::cost_of(node.op);
    first = group.nodes[i];
  }
  if (first == group.nodes.front()) return kNoId;
  const double points = double(c10::multiply_integers(parallel));
  return points * cost * (1 - 1.0 / lanes) > kKernelCost ? first : kNoId;
}

}  // namespace torch_lazy
