#include "codegen/op_cost.h"

namespace torch_lazy::codegen {

int cost_of(Op op) {
  switch (op) {
    case Op::kNumber:
    case Op::kInteger:
      return 0;
    case Op::kDiv:
    case Op::kReciprocal:
    case Op::kSqrt:
      return 6;  // one instruction that occupies its unit for long
    case Op::kRsqrt:
    case Op::kDivTrunc:
    case Op::kDivFloor:
      return 10;
    case Op::kRemainder:
    case Op::kFmod:
      return 14;
    // Polynomials of 5 to 10 terms with a reduction of the argument.
    case Op::kExp:
    case Op::kExp2:
      return 14;
    case Op::kLog:
    case Op::kLog2:
    case Op::kLog10:
    case Op::kLog1p:
    case Op::kExpm1:
    case Op::kSigmoid:
      return 24;
    case Op::kSin:
    case Op::kCos:
    case Op::kTanh:
    case Op::kErf:
    case Op::kSinh:
    case Op::kCosh:
    case Op::kAtan:
    case Op::kHypot:
      return 30;
    case Op::kTan:
    case Op::kAsin:
    case Op::kAcos:
    case Op::kAtan2:
    case Op::kAsinh:
    case Op::kAcosh:
    case Op::kAtanh:
    case Op::kErfc:
    case Op::kErfinv:
    case Op::kPow:
      return 60;
    case Op::kPhiloxUniform:
      return 80;  // ten rounds in integers of 64 bits
    case Op::kLgamma:
    case Op::kDigamma:
      return 150;
    default:
      return 1;
  }
}

namespace {

// How many times the registers of kFloat a vector of this type takes.
int width_of(Type type) {
  return bytes_of(type) == 8 ? 2 : 1;
}

}  // namespace

int cost_of(const Expr& expr) {
  if (expr.op == Op::kLoad) {
    // A gather takes an access for every lane.
    if (!expr.access.indirect.empty()) return 16;
    return width_of(expr.type) + (bytes_of(expr.type) < 4 ? 1 : 0);
  }
  return cost_of(expr.op) * width_of(expr.type);
}

int cost_of(const Kernel& kernel, const Pass& pass) {
  int cost = 0;
  for (ExprId id : pass.exprs) cost += cost_of(kernel.exprs[id]);
  return cost;
}

}  // namespace torch_lazy::codegen
