#include "codegen/op_cost.h"

namespace torch_lazy::codegen {

int width_of(Type type) {
  return bytes_of(type) == 8 ? 2 : 1;
}

int cost_of(const Expr& expr) {
  if (expr.op == Op::kLoad) {
    // A gather takes an access for every lane.
    if (!expr.access.indirect.empty()) return 16;
    return width_of(expr.type) + (bytes_of(expr.type) < 4 ? 1 : 0);
  }
  return cost_of(expr.op) * width_of(expr.type);
}

int cost_of(const Kernel& kernel, const Sweep& sweep) {
  int cost = 0;
  for (ExprId id : sweep.exprs) cost += cost_of(kernel.exprs[id]);
  return cost;
}

}  // namespace torch_lazy::codegen
