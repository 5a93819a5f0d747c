#include "codegen/choose_pairs.h"

#include <algorithm>
#include <numeric>

#include "codegen/cache_hints.h"

namespace torch_lazy::codegen {
namespace {

// Of a row, in pairs.
constexpr int64_t kLeastPairs = 4;
// Twice as much of longer bodies takes long to compile: with 90 expressions, half of which are
// elementary functions, 25 % longer.
constexpr size_t kMostExpressions = 128;

// A function of float whose operations are the kernel's own (prelude/cpu_math_float). Others are
// calls, which take one vector, or half a one, after the other.
bool is_chain(const Expr& expr) {
  if (bytes_of(expr.type) > bytes_of(Type::kFloat)) return false;
  switch (expr.op) {
    case Op::kExp:
    case Op::kExp2:
    case Op::kExpm1:
    case Op::kLog:
    case Op::kLog2:
    case Op::kLog10:
    case Op::kLog1p:
    case Op::kSin:
    case Op::kCos:
    case Op::kSinh:
    case Op::kCosh:
    case Op::kTanh:
    case Op::kSigmoid:
    case Op::kErf:
    case Op::kErfinv:
      return true;
    default:
      return false;
  }
}

bool is_row_or_number(const Access& access, ExprId predicate, size_t lane_dimension) {
  const Size& stride = access.strides[lane_dimension];
  return predicate == kNoPredicate && access.indirect.empty() && (stride.is(0) || stride.is(1));
}

}  // namespace

bool gain_by_pairs(const Kernel& kernel, const std::vector<ExprId>& exprs, int lanes) {
  return lanes > 1 && 2 * lanes * bytes_of(Type::kFloat) <= kCacheLineBytes &&
         exprs.size() <= kMostExpressions &&
         std::any_of(exprs.begin(), exprs.end(),
                     [&](ExprId id) { return is_chain(kernel.exprs[id]); });
}

bool goes_by_pairs(const Kernel& kernel, const std::vector<int64_t>& sizes, int lanes) {
  if (kernel.parallel.empty() || !kernel.reduction.empty() || kernel.jam.steps > 1) return false;
  const Size extent = kernel.parallel.back();
  const int64_t row = extent.slot ? sizes[size_t(extent.value)] : extent.value;
  std::vector<ExprId> all(kernel.exprs.size());
  std::iota(all.begin(), all.end(), ExprId(0));
  if (row < kLeastPairs * 2 * lanes || !gain_by_pairs(kernel, all, lanes)) return false;
  const size_t lane_dimension = kernel.parallel.size() - 1;
  const auto loads_a_row = [&](const Expr& expr) {
    return expr.op != Op::kLoad || is_row_or_number(expr.access, expr.predicate, lane_dimension);
  };
  const auto stores_a_row = [&](const Store& store) {
    return is_row_or_number(store.access, store.predicate, lane_dimension);
  };
  return std::all_of(kernel.exprs.begin(), kernel.exprs.end(), loads_a_row) &&
         std::all_of(kernel.stores.begin(), kernel.stores.end(), stores_a_row);
}

}  // namespace torch_lazy::codegen
