// The primitives: what a kernel computes for an element, and over elements where it reduces.
//
// Passes choose the primitive of each core operator, the kernel generator prints it in a target's
// syntax.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>

namespace torch_lazy::primitive {

// As ATen's dtypes of these names.
enum class Type : uint8_t {
  kBool,
  kUInt8,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat8E4M3FN,
  kFloat8E5M2,
  kBFloat16,
  kHalf,
  kFloat,
  kDouble,
};

// Raises for a dtype that has_type() refuses.
Type type_of(c10::ScalarType dtype);
// False for dtypes that no kernel computes with (complex, quantized, float8 of other formats,
// unsigned 16 and more).
bool has_type(c10::ScalarType dtype);

// Semantics are ATen's for the type of the expression: integers wrap, floats follow IEEE, and
// min/max/clamp pass NaN on. Arithmetic on low types (is_low) does not exist: an expression of one
// is a kLoad or a kCast, and its value is exactly representable in it; everything else on such
// data is done in kFloat between casts.
enum class Op : uint8_t {
  // Leaves.
  kLoad,     // buffer, access
  kNumber,   // double slot `value.slot ? D[value.value]`; a constant is not used
  kInteger,  // `value` as an integer of the expression's type
  kIndex,    // the index of dimension `dimension`, kInt64
  // From one type to another, as static_cast, with float -> integer and NaN as ATen does; to kBool:
  // x != 0; to low types: round to nearest even, in float8 beyond its range as PyTorch.
  kCast,
  // The operand's bits as another type of the same width.
  kBitcast,
  // Any type.
  kSelect,  // arguments: kBool, a, b
  kEqual,   // kBool results; the arguments have one type
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kAdd,
  kSub,
  kMul,
  kNeg,
  kAbs,
  kSign,
  kMin,  // NaN if either is
  kMax,
  // kBool and integers.
  kAnd,
  kOr,
  kXor,
  kNot,  // logical on kBool, bitwise on integers
  kShiftLeft,
  kShiftRight,
  // Integers: kDivTrunc toward zero, kDivFloor; the divisor was checked where ATen raises.
  // Floats: kDiv, kDivTrunc, kDivFloor as ATen's rounding modes.
  kDiv,
  kDivTrunc,
  kDivFloor,
  kRemainder,  // Python's, the divisor's sign
  kFmod,       // C's
  kPow,
  // kFloat and kDouble.
  kFma,  // a * b + c in one rounding
  kSqrt,
  kRsqrt,
  kReciprocal,
  kExp,
  kExp2,
  kExpm1,
  kLog,
  kLog2,
  kLog10,
  kLog1p,
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kAtan2,
  kSinh,
  kCosh,
  kTanh,
  kAsinh,
  kAcosh,
  kAtanh,
  kErf,
  kErfc,
  kErfinv,
  kLgamma,
  kDigamma,
  kSigmoid,
  kHypot,
  kFloor,
  kCeil,
  kRound,  // half to even
  kTrunc,
  kIsNan,  // kBool
  kIsInf,
  kCopySign,
  // kFloat in [0, 1) of two kInt64: element `first` of the random stream that is keyed by `second`,
  // as torch_lazy::philox_uniform.
  kPhiloxUniform,
  // kInt64: the first operand where it is in [0, second). Elsewhere 0, and the fourth operand is
  // stored at the address that the third one holds; for devices that tell of bad indices late.
  kWithin,
  // Along the one reduction dimension: of the argument up to this step, which is included. The
  // result varies along it. The order is not specified, but is that of the steps where another one
  // would leave the range of floats.
  kScanSum,
  kScanProd,
  // Over all reduction dimensions; the argument varies along them, the result does not. kFloat sums
  // are kept in several accumulators; the order of additions is not specified.
  kReduceSum,
  kReduceProd,
  kReduceMin,  // NaN if any is
  kReduceMax,
  kReduceAnd,  // kBool
  kReduceOr,
  // Index (kInt64) of the first greatest or least element along the flattened reduction dimensions;
  // NaN counts as greatest and as least.
  kReduceArgMax,
  kReduceArgMin,
};

// "add", "reduce_sum": lower case, as in the printed IR; the prelude's functions are named
// `lazy_add` and so on.
const char* name_of(Op op);
const char* name_of(Type type);  // "float", "bfloat16"
int64_t bytes_of(Type type);
int argument_count(Op op);
bool is_comparison(Op op);
bool is_scan(Op op);
bool is_reduction(Op op);
// Of integers, where the second is 0 or, as an exponent, negative.
bool may_raise_on_integers(Op op);
bool is_floating(Type type);
// kHalf and what is before it among the floating ones: data that is computed with in kFloat.
bool is_low(Type type);

// What evaluating it costs for kFloat, in units of about one simple vector instruction (an add, a
// load from the first-level cache).
int cost_of(Op op);

}  // namespace torch_lazy::primitive
