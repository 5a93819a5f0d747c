#include "passes/core_operators.h"

#include <unordered_map>

namespace torch_lazy {
namespace {

using primitive::Op;

struct Pointwise {
  const char* name;  // without "aten::"
  Op op;
};

constexpr Pointwise kUnary[] = {
    {"neg", Op::kNeg},         {"abs", Op::kAbs},         {"sign", Op::kSign},
    {"sqrt", Op::kSqrt},       {"rsqrt", Op::kRsqrt},     {"reciprocal", Op::kReciprocal},
    {"exp", Op::kExp},         {"exp2", Op::kExp2},       {"expm1", Op::kExpm1},
    {"log", Op::kLog},         {"log2", Op::kLog2},       {"log10", Op::kLog10},
    {"log1p", Op::kLog1p},     {"sin", Op::kSin},         {"cos", Op::kCos},
    {"tan", Op::kTan},         {"asin", Op::kAsin},       {"acos", Op::kAcos},
    {"atan", Op::kAtan},       {"sinh", Op::kSinh},       {"cosh", Op::kCosh},
    {"tanh", Op::kTanh},       {"asinh", Op::kAsinh},     {"acosh", Op::kAcosh},
    {"atanh", Op::kAtanh},     {"erf", Op::kErf},         {"erfc", Op::kErfc},
    {"erfinv", Op::kErfinv},   {"lgamma", Op::kLgamma},   {"digamma", Op::kDigamma},
    {"sigmoid", Op::kSigmoid}, {"floor", Op::kFloor},     {"ceil", Op::kCeil},
    {"round", Op::kRound},     {"trunc", Op::kTrunc},     {"isnan", Op::kIsNan},
    {"isinf", Op::kIsInf},     {"logical_not", Op::kNot}, {"bitwise_not", Op::kNot},
};

constexpr Pointwise kBinary[] = {
    {"add.Tensor", Op::kAdd},
    {"sub.Tensor", Op::kSub},
    {"mul.Tensor", Op::kMul},
    {"div.Tensor", Op::kDiv},
    {"div.Tensor_mode", Op::kDiv},
    {"remainder.Tensor", Op::kRemainder},
    {"fmod.Tensor", Op::kFmod},
    {"pow.Tensor_Tensor", Op::kPow},
    {"maximum", Op::kMax},
    {"minimum", Op::kMin},
    {"atan2", Op::kAtan2},
    {"hypot", Op::kHypot},
    {"copysign.Tensor", Op::kCopySign},
    {"eq.Tensor", Op::kEqual},
    {"ne.Tensor", Op::kNotEqual},
    {"lt.Tensor", Op::kLess},
    {"le.Tensor", Op::kLessEqual},
    {"gt.Tensor", Op::kGreater},
    {"ge.Tensor", Op::kGreaterEqual},
    {"logical_and", Op::kAnd},
    {"logical_or", Op::kOr},
    {"logical_xor", Op::kXor},
    {"bitwise_and.Tensor", Op::kAnd},
    {"bitwise_or.Tensor", Op::kOr},
    {"bitwise_xor.Tensor", Op::kXor},
    {"bitwise_left_shift.Tensor", Op::kShiftLeft},
    {"bitwise_right_shift.Tensor", Op::kShiftRight},
};

struct Entry {
  const char* name;
  CoreOperator core;
};

constexpr Entry kOthers[] = {
    {"aten::where.self", {CoreKind::kPointwise, Op::kSelect, 3}},
    {"aten::addcmul", {CoreKind::kPointwise, Op::kFma, 3}},
    {"torch_lazy::philox_uniform", {CoreKind::kPointwise, Op::kPhiloxUniform, 2}},
    {"aten::_to_copy", {CoreKind::kCopy, Op::kCast, 1}},
    {"aten::clone", {CoreKind::kCopy, Op::kCast, 1}},
    {"aten::full", {CoreKind::kFill, Op::kNumber, 0}},
    {"aten::arange.start_step", {CoreKind::kArange, Op::kIndex, 0}},
    {"aten::as_strided", {CoreKind::kView, Op::kLoad, 1}},
    {"aten::as_strided_scatter", {CoreKind::kScatter, Op::kLoad, 2}},
    {"aten::copy_", {CoreKind::kMutation, Op::kLoad, 2}},
    {"aten::cat", {CoreKind::kCat, Op::kLoad, 1}},
    {"aten::flip", {CoreKind::kFlip, Op::kLoad, 1}},
    {"aten::embedding", {CoreKind::kGather, Op::kLoad, 2}},
    {"aten::index_select", {CoreKind::kGather, Op::kLoad, 1}},
    {"aten::gather", {CoreKind::kGather, Op::kLoad, 1}},
    {"aten::sum.dim_IntList", {CoreKind::kReduction, Op::kReduceSum, 1}},
    {"aten::prod.dim_int", {CoreKind::kReduction, Op::kReduceProd, 1}},
    {"aten::amax", {CoreKind::kReduction, Op::kReduceMax, 1}},
    {"aten::amin", {CoreKind::kReduction, Op::kReduceMin, 1}},
    {"aten::any.dims", {CoreKind::kReduction, Op::kReduceOr, 1}},
    {"aten::any.dim", {CoreKind::kReduction, Op::kReduceOr, 1}},
    {"aten::all.dims", {CoreKind::kReduction, Op::kReduceAnd, 1}},
    {"aten::all.dim", {CoreKind::kReduction, Op::kReduceAnd, 1}},
    {"aten::argmax", {CoreKind::kReduction, Op::kReduceArgMax, 1}},
    {"aten::argmin", {CoreKind::kReduction, Op::kReduceArgMin, 1}},
    {"aten::cumsum", {CoreKind::kScan, Op::kScanSum, 1}},
    {"aten::cumprod", {CoreKind::kScan, Op::kScanProd, 1}},
};

std::unordered_map<std::string, CoreOperator> make_table() {
  std::unordered_map<std::string, CoreOperator> table;
  for (const auto& [name, op] : kUnary)
    table.emplace(std::string("aten::") + name, CoreOperator{CoreKind::kPointwise, op, 1});
  for (const auto& [name, op] : kBinary)
    table.emplace(std::string("aten::") + name, CoreOperator{CoreKind::kPointwise, op, 2});
  for (const auto& [name, core] : kOthers) table.emplace(name, core);
  return table;
}

}  // namespace

const CoreOperator* find_core_operator(const std::string& name) {
  static const auto& table = *new std::unordered_map<std::string, CoreOperator>(make_table());
  const auto found = table.find(name);
  return found == table.end() ? nullptr : &found->second;
}

}  // namespace torch_lazy
