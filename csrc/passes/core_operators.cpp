#include "passes/core_operators.h"

#include <unordered_map>

namespace torch_lazy {
namespace {

using primitive::Op;

std::unordered_map<std::string, CoreOperator> make_table() {
  std::unordered_map<std::string, CoreOperator> table;
  const auto add = [&](CoreKind kind, Op op, size_t tensors,
                       std::initializer_list<const char*> names) {
    for (const char* name : names)
      table.emplace(std::string("aten::") + name, CoreOperator{kind, op, tensors});
  };
  const auto unary = [&](const char* name, Op op) { add(CoreKind::kPointwise, op, 1, {name}); };
  const auto binary = [&](const char* name, Op op) { add(CoreKind::kPointwise, op, 2, {name}); };

  unary("neg", Op::kNeg);
  unary("abs", Op::kAbs);
  unary("sign", Op::kSign);
  unary("sqrt", Op::kSqrt);
  unary("rsqrt", Op::kRsqrt);
  unary("reciprocal", Op::kReciprocal);
  unary("exp", Op::kExp);
  unary("exp2", Op::kExp2);
  unary("expm1", Op::kExpm1);
  unary("log", Op::kLog);
  unary("log2", Op::kLog2);
  unary("log10", Op::kLog10);
  unary("log1p", Op::kLog1p);
  unary("sin", Op::kSin);
  unary("cos", Op::kCos);
  unary("tan", Op::kTan);
  unary("asin", Op::kAsin);
  unary("acos", Op::kAcos);
  unary("atan", Op::kAtan);
  unary("sinh", Op::kSinh);
  unary("cosh", Op::kCosh);
  unary("tanh", Op::kTanh);
  unary("asinh", Op::kAsinh);
  unary("acosh", Op::kAcosh);
  unary("atanh", Op::kAtanh);
  unary("erf", Op::kErf);
  unary("erfc", Op::kErfc);
  unary("erfinv", Op::kErfinv);
  unary("lgamma", Op::kLgamma);
  unary("digamma", Op::kDigamma);
  unary("sigmoid", Op::kSigmoid);
  unary("floor", Op::kFloor);
  unary("ceil", Op::kCeil);
  unary("round", Op::kRound);
  unary("trunc", Op::kTrunc);
  unary("isnan", Op::kIsNan);
  unary("isinf", Op::kIsInf);
  unary("logical_not", Op::kNot);
  unary("bitwise_not", Op::kNot);

  binary("add.Tensor", Op::kAdd);
  binary("sub.Tensor", Op::kSub);
  binary("mul.Tensor", Op::kMul);
  binary("div.Tensor", Op::kDiv);
  binary("div.Tensor_mode", Op::kDiv);
  binary("remainder.Tensor", Op::kRemainder);
  binary("fmod.Tensor", Op::kFmod);
  binary("pow.Tensor_Tensor", Op::kPow);
  binary("maximum", Op::kMax);
  binary("minimum", Op::kMin);
  binary("atan2", Op::kAtan2);
  binary("hypot", Op::kHypot);
  binary("copysign.Tensor", Op::kCopySign);
  binary("eq.Tensor", Op::kEqual);
  binary("ne.Tensor", Op::kNotEqual);
  binary("lt.Tensor", Op::kLess);
  binary("le.Tensor", Op::kLessEqual);
  binary("gt.Tensor", Op::kGreater);
  binary("ge.Tensor", Op::kGreaterEqual);
  binary("logical_and", Op::kAnd);
  binary("logical_or", Op::kOr);
  binary("logical_xor", Op::kXor);
  binary("bitwise_and.Tensor", Op::kAnd);
  binary("bitwise_or.Tensor", Op::kOr);
  binary("bitwise_xor.Tensor", Op::kXor);
  binary("bitwise_left_shift.Tensor", Op::kShiftLeft);
  binary("bitwise_right_shift.Tensor", Op::kShiftRight);
  add(CoreKind::kPointwise, Op::kSelect, 3, {"where.self"});

  add(CoreKind::kPointwise, Op::kFma, 3, {"addcmul"});
  table.emplace("torch_lazy::philox_uniform",
                CoreOperator{CoreKind::kPointwise, Op::kPhiloxUniform, 2});

  add(CoreKind::kCopy, Op::kCast, 1, {"_to_copy", "clone"});
  add(CoreKind::kFill, Op::kNumber, 0, {"full"});
  add(CoreKind::kArange, Op::kIndex, 0, {"arange.start_step"});
  add(CoreKind::kView, Op::kLoad, 1, {"as_strided"});
  add(CoreKind::kScatter, Op::kLoad, 2, {"as_strided_scatter"});
  add(CoreKind::kWriteBack, Op::kLoad, 2, {"copy_"});
  add(CoreKind::kCat, Op::kLoad, 1, {"cat"});
  add(CoreKind::kGather, Op::kLoad, 2, {"embedding"});
  add(CoreKind::kGather, Op::kLoad, 1, {"index_select", "gather"});

  add(CoreKind::kReduction, Op::kReduceSum, 1, {"sum.dim_IntList"});
  add(CoreKind::kReduction, Op::kReduceProd, 1, {"prod.dim_int"});
  add(CoreKind::kReduction, Op::kReduceMax, 1, {"amax"});
  add(CoreKind::kReduction, Op::kReduceMin, 1, {"amin"});
  add(CoreKind::kReduction, Op::kReduceOr, 1, {"any.dims", "any.dim"});
  add(CoreKind::kReduction, Op::kReduceAnd, 1, {"all.dims", "all.dim"});
  add(CoreKind::kReduction, Op::kReduceArgMax, 1, {"argmax"});
  add(CoreKind::kReduction, Op::kReduceArgMin, 1, {"argmin"});
  return table;
}

}  // namespace

const CoreOperator* find_core_operator(const std::string& name) {
  static const auto& table = *new std::unordered_map<std::string, CoreOperator>(make_table());
  const auto found = table.find(name);
  return found == table.end() ? nullptr : &found->second;
}

}  // namespace torch_lazy
