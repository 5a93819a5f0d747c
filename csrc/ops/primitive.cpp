#include "ops/primitive.h"

#include <c10/util/Exception.h>

#include <iterator>

namespace torch_lazy::primitive {
namespace {

struct OpInfo {
  const char* name;
  int arguments;
};

// In the order of Op.
constexpr OpInfo kOps[] = {
    {"load", 0},
    {"number", 0},
    {"integer", 0},
    {"index", 0},
    {"cast", 1},
    {"bitcast", 1},
    {"select", 3},
    {"equal", 2},
    {"not_equal", 2},
    {"less", 2},
    {"less_equal", 2},
    {"greater", 2},
    {"greater_equal", 2},
    {"add", 2},
    {"sub", 2},
    {"mul", 2},
    {"neg", 1},
    {"abs", 1},
    {"sign", 1},
    {"min", 2},
    {"max", 2},
    {"and", 2},
    {"or", 2},
    {"xor", 2},
    {"not", 1},
    {"shift_left", 2},
    {"shift_right", 2},
    {"div", 2},
    {"div_trunc", 2},
    {"div_floor", 2},
    {"remainder", 2},
    {"fmod", 2},
    {"pow", 2},
    {"fma", 3},
    {"sqrt", 1},
    {"rsqrt", 1},
    {"reciprocal", 1},
    {"exp", 1},
    {"exp2", 1},
    {"expm1", 1},
    {"log", 1},
    {"log2", 1},
    {"log10", 1},
    {"log1p", 1},
    {"sin", 1},
    {"cos", 1},
    {"tan", 1},
    {"asin", 1},
    {"acos", 1},
    {"atan", 1},
    {"atan2", 2},
    {"sinh", 1},
    {"cosh", 1},
    {"tanh", 1},
    {"asinh", 1},
    {"acosh", 1},
    {"atanh", 1},
    {"erf", 1},
    {"erfc", 1},
    {"erfinv", 1},
    {"lgamma", 1},
    {"digamma", 1},
    {"sigmoid", 1},
    {"hypot", 2},
    {"floor", 1},
    {"ceil", 1},
    {"round", 1},
    {"trunc", 1},
    {"is_nan", 1},
    {"is_inf", 1},
    {"copy_sign", 2},
    {"philox_uniform", 2},
    {"within", 4},
    {"scan_sum", 1},
    {"scan_prod", 1},
    {"reduce_sum", 1},
    {"reduce_prod", 1},
    {"reduce_min", 1},
    {"reduce_max", 1},
    {"reduce_and", 1},
    {"reduce_or", 1},
    {"reduce_arg_max", 1},
    {"reduce_arg_min", 1},
};
static_assert(std::size(kOps) == static_cast<size_t>(Op::kReduceArgMin) + 1);

struct TypeInfo {
  const char* name;
  int64_t bytes;
};

// In the order of Type.
constexpr TypeInfo kTypes[] = {
    {"bool", 1},     {"uint8", 1}, {"int8", 1},          {"int16", 2},
    {"int32", 4},    {"int64", 8}, {"float8_e4m3fn", 1}, {"float8_e5m2", 1},
    {"bfloat16", 2}, {"half", 2},  {"float", 4},         {"double", 8},
};
static_assert(std::size(kTypes) == static_cast<size_t>(Type::kDouble) + 1);

}  // namespace

const char* name_of(Op op) {
  return kOps[static_cast<size_t>(op)].name;
}
const char* name_of(Type type) {
  return kTypes[static_cast<size_t>(type)].name;
}
int64_t bytes_of(Type type) {
  return kTypes[static_cast<size_t>(type)].bytes;
}
int argument_count(Op op) {
  return kOps[static_cast<size_t>(op)].arguments;
}
bool is_comparison(Op op) {
  return op >= Op::kEqual && op <= Op::kGreaterEqual;
}
bool is_scan(Op op) {
  return op == Op::kScanSum || op == Op::kScanProd;
}
bool is_reduction(Op op) {
  return op >= Op::kReduceSum;
}
bool is_low(Type type) {
  return is_floating(type) && type <= Type::kHalf;
}

bool is_floating(Type type) {
  return type >= Type::kFloat8E4M3FN;
}

Type type_of(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::ScalarType::Bool:
      return Type::kBool;
    case c10::ScalarType::Byte:
      return Type::kUInt8;
    case c10::ScalarType::Char:
      return Type::kInt8;
    case c10::ScalarType::Short:
      return Type::kInt16;
    case c10::ScalarType::Int:
      return Type::kInt32;
    case c10::ScalarType::Long:
      return Type::kInt64;
    case c10::ScalarType::Float8_e4m3fn:
      return Type::kFloat8E4M3FN;
    case c10::ScalarType::Float8_e5m2:
      return Type::kFloat8E5M2;
    case c10::ScalarType::BFloat16:
      return Type::kBFloat16;
    case c10::ScalarType::Half:
      return Type::kHalf;
    case c10::ScalarType::Float:
      return Type::kFloat;
    case c10::ScalarType::Double:
      return Type::kDouble;
    default:
      TORCH_CHECK(false, "kernels do not compute with dtype ", dtype);
  }
}

bool has_type(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::ScalarType::Bool:
    case c10::ScalarType::Byte:
    case c10::ScalarType::Char:
    case c10::ScalarType::Short:
    case c10::ScalarType::Int:
    case c10::ScalarType::Long:
    case c10::ScalarType::Float8_e4m3fn:
    case c10::ScalarType::Float8_e5m2:
    case c10::ScalarType::BFloat16:
    case c10::ScalarType::Half:
    case c10::ScalarType::Float:
    case c10::ScalarType::Double:
      return true;
    default:
      return false;
  }
}

bool may_raise_on_integers(Op op) {
  return op == Op::kDiv || op == Op::kDivTrunc || op == Op::kDivFloor || op == Op::kRemainder ||
         op == Op::kFmod || op == Op::kPow;
}

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
    case Op::kScanSum:  // over the lanes of a vector
    case Op::kScanProd:
      return 10;
    case Op::kRemainder:
    case Op::kFmod:
    // Polynomials of 5 to 10 terms with a reduction of the argument, from here on.
    case Op::kExp:
    case Op::kExp2:
      return 14;
    case Op::kLog:
    case Op::kLog2:
    case Op::kLog10:
    case Op::kLog1p:
    case Op::kExpm1:
    case Op::kSigmoid:
    case Op::kSin:
    case Op::kCos:
    case Op::kErf:
      return 24;
    case Op::kTanh:
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

}  // namespace torch_lazy::primitive
