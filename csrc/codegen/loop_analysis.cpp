#include "codegen/loop_analysis.h"

#include <algorithm>

namespace torch_lazy::codegen {

Dimensions dimension_bit(size_t dimension) {
  return Dimensions{1} << dimension;
}

Dimensions reduction_dimensions(const Kernel& kernel) {
  const size_t parallel = kernel.parallel.size();
  return (dimension_bit(kernel.reduction.size()) - 1) << parallel;
}

size_t lane_dimension(const Kernel& kernel) {
  const size_t parallel = kernel.parallel.size();
  if (kernel.axis == Axis::kReduction) return parallel + kernel.reduction.size() - 1;
  return parallel == 0 ? kNoDimension : parallel - 1;
}

bool is_unrolled(const Kernel& kernel) {
  int64_t steps = 1;
  for (Size extent : kernel.reduction) {
    if (extent.slot) return false;
    steps *= extent.value;
  }
  return kernel.axis == Axis::kParallel && !kernel.reduction.empty() && steps <= kMostUnrolledSteps;
}

bool is_arg_reduction(Op op) {
  return op == Op::kReduceArgMax || op == Op::kReduceArgMin;
}

bool has_scans(const std::vector<Expr>& exprs) {
  return std::ranges::any_of(exprs, is_scan, &Expr::op);
}

bool is_floating_sum(const Expr& expr) {
  return expr.op == Op::kReduceSum && is_floating(expr.type);
}

bool is_read(const Kernel& kernel, uint32_t buffer) {
  return std::any_of(kernel.exprs.begin(), kernel.exprs.end(), [&](const Expr& expr) {
    return expr.op == Op::kLoad && expr.buffer == buffer;
  });
}

std::vector<ExprId> operands_of(const Expr& expr) {
  std::vector<ExprId> operands = expr.arguments;
  for (const auto& indirect : expr.access.indirect) operands.push_back(indirect.index);
  if (expr.predicate != kNoPredicate) operands.push_back(expr.predicate);
  return operands;
}

std::vector<ExprId> operands_of(const Store& store) {
  std::vector<ExprId> operands{store.expr};
  for (const auto& indirect : store.access.indirect) operands.push_back(indirect.index);
  if (store.predicate != kNoPredicate) operands.push_back(store.predicate);
  return operands;
}

Dimensions varying_dimensions(const Access& access, const std::vector<Dimensions>& of_exprs) {
  Dimensions dimensions = 0;
  for (size_t i = 0; i < access.strides.size(); ++i) {
    if (!access.strides[i].is(0)) dimensions |= dimension_bit(i);
  }
  for (const auto& indirect : access.indirect) dimensions |= of_exprs[indirect.index];
  return dimensions;
}

std::vector<Dimensions> varying_dimensions(const Kernel& kernel) {
  const Dimensions reduction = reduction_dimensions(kernel);
  std::vector<Dimensions> dimensions;
  dimensions.reserve(kernel.exprs.size());
  for (const Expr& expr : kernel.exprs) {
    Dimensions of_expr = varying_dimensions(expr.access, dimensions);
    for (ExprId operand : operands_of(expr)) of_expr |= dimensions[operand];
    if (expr.op == Op::kIndex) of_expr |= dimension_bit(expr.dimension);
    if (is_reduction(expr.op)) of_expr &= ~reduction;
    if (is_scan(expr.op)) of_expr |= reduction;
    dimensions.push_back(of_expr);
  }
  return dimensions;
}

std::vector<int> reduction_levels(const Kernel& kernel) {
  std::vector<int> levels;
  levels.reserve(kernel.exprs.size());
  for (const Expr& expr : kernel.exprs) {
    int level = 0;
    for (ExprId operand : operands_of(expr)) level = std::max(level, levels[operand]);
    levels.push_back(level + (is_reduction(expr.op) ? 1 : 0));
  }
  return levels;
}

}  // namespace torch_lazy::codegen
