// Values as terms of formulas, so that a decomposition reads as the formula it stands for:
//   finish(0.5 * x * (1 + erf(x * kSqrtHalf)))
// Each operation adds a node. Both sides have one dtype; a number becomes a constant of the dtype
// of the term beside it.
#pragma once

#include "passes/graph_builder.h"

namespace torch_lazy {

struct Term {
  GraphBuilder* builder = nullptr;
  torch::jit::Value* value = nullptr;

  c10::ScalarType dtype() const;
  TensorInfo info() const { return info_of(value); }
  Term number(const at::Scalar& value) const { return {builder, builder->number(value, dtype())}; }
  Term to(c10::ScalarType dtype) const { return {builder, builder->to(value, dtype)}; }
};

// A pointwise operator with one tensor argument: `name` without "aten::".
Term unary(const char* name, Term x);
// With two, of one dtype. `dtype`: the result's, where it is another.
Term binary(const char* name, const char* overload, Term a, Term b,
            std::optional<c10::ScalarType> dtype = std::nullopt);

Term operator+(Term a, Term b);
Term operator-(Term a, Term b);
Term operator*(Term a, Term b);
Term operator/(Term a, Term b);
Term operator-(Term a);

#define TORCH_LAZY_WITH_NUMBERS(op)                      \
  inline Term operator op(Term a, const at::Scalar& b) { \
    return a op a.number(b);                             \
  }                                                      \
  inline Term operator op(const at::Scalar& a, Term b) { \
    return b.number(a) op b;                             \
  }
TORCH_LAZY_WITH_NUMBERS(+)
TORCH_LAZY_WITH_NUMBERS(-)
TORCH_LAZY_WITH_NUMBERS(*)
TORCH_LAZY_WITH_NUMBERS(/)
#undef TORCH_LAZY_WITH_NUMBERS

// a + b * c, rounded once or twice.
Term multiply_add(Term a, Term b, Term c);
Term maximum(Term a, Term b);
Term minimum(Term a, Term b);
Term where(Term condition, Term a, Term b);

// Comparisons, kBool. `name`: eq, ne, lt, le, gt, ge.
Term compare(const char* name, Term a, Term b);
inline Term compare(const char* name, Term a, const at::Scalar& b) {
  return compare(name, a, a.number(b));
}
// isnan, isinf: kBool.
Term test(const char* name, Term x);
Term logical_and(Term a, Term b);
Term logical_or(Term a, Term b);
Term logical_not(Term a);

inline Term exp(Term x) {
  return unary("exp", x);
}
inline Term expm1(Term x) {
  return unary("expm1", x);
}
inline Term log(Term x) {
  return unary("log", x);
}
inline Term log1p(Term x) {
  return unary("log1p", x);
}
inline Term tanh(Term x) {
  return unary("tanh", x);
}
inline Term erf(Term x) {
  return unary("erf", x);
}
inline Term abs(Term x) {
  return unary("abs", x);
}
inline Term sqrt(Term x) {
  return unary("sqrt", x);
}
inline Term rsqrt(Term x) {
  return unary("rsqrt", x);
}
inline Term sigmoid(Term x) {
  return unary("sigmoid", x);
}
inline Term reciprocal(Term x) {
  return unary("reciprocal", x);
}

// The argument `dtype` with which ATen sums or multiplies elements of the term in their own dtype;
// without, it widens integers.
torch::jit::Value* accumulated_dtype(Term x);

// Reductions over dimensions of `dims`, in the term's dtype.
Term sum(Term x, c10::IntArrayRef dims, bool keepdim = true);
Term amax(Term x, c10::IntArrayRef dims, bool keepdim = true);
Term amin(Term x, c10::IntArrayRef dims, bool keepdim = true);

// Without the dimensions `dims`, which have size 1.
Term squeeze(Term x, c10::IntArrayRef dims);
// With dimensions of size 1 at these positions of the result.
inline Term unsqueeze(Term x, c10::IntArrayRef positions) {
  return {x.builder, x.builder->unsqueeze(x.value, positions)};
}
inline Term view(Term x, c10::IntArrayRef sizes, c10::IntArrayRef strides, int64_t offset = 0) {
  return {x.builder, x.builder->view(x.value, sizes, strides, offset)};
}

// A copy of `base` with `source` in the view.
Term scatter_view(Term base, Term source, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                  int64_t offset);

}  // namespace torch_lazy
