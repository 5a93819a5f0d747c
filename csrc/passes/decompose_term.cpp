#include "passes/decompose_term.h"

#include <algorithm>
#include <string>

namespace torch_lazy {

using torch::jit::Value;

namespace {

std::string qualified(const char* name) {
  return std::string("aten::") + name;
}

Term term(Term like, Value* value) {
  return {like.builder, value};
}

void expect_one_dtype(const char* name, Term a, Term b) {
  TORCH_INTERNAL_ASSERT(a.dtype() == b.dtype(), name, " of ", a.dtype(), " and ", b.dtype());
}

// A single number is its own sum, which is never -0, and its own extremum.
bool is_single(Term x) {
  return x.info().dims() == 0;
}

}  // namespace

c10::ScalarType Term::dtype() const {
  return *value->type()->expectRef<c10::TensorType>().scalarType();
}

Term unary(const char* name, Term x) {
  return term(x, x.builder->pointwise(qualified(name).c_str(), "", {x.value}, x.dtype()));
}

Term binary(const char* name, const char* overload, Term a, Term b,
            std::optional<c10::ScalarType> dtype) {
  expect_one_dtype(name, a, b);
  return term(a, a.builder->pointwise(qualified(name).c_str(), overload, {a.value, b.value},
                                      dtype.value_or(a.dtype())));
}

Term operator+(Term a, Term b) {
  expect_one_dtype("add", a, b);
  return term(a, a.builder->pointwise("aten::add", "Tensor", {a.value, b.value}, a.dtype(),
                                      {a.builder->integer(1)}));
}

Term operator-(Term a, Term b) {
  expect_one_dtype("sub", a, b);
  return term(a, a.builder->pointwise("aten::sub", "Tensor", {a.value, b.value}, a.dtype(),
                                      {a.builder->integer(1)}));
}

Term operator*(Term a, Term b) {
  return binary("mul", "Tensor", a, b);
}

Term operator/(Term a, Term b) {
  return binary("div", "Tensor", a, b);
}

Term operator-(Term a) {
  return unary("neg", a);
}

Term multiply_add(Term a, Term b, Term c) {
  if (!c10::isFloatingType(a.dtype())) return a + b * c;
  expect_one_dtype("addcmul", a, b);
  expect_one_dtype("addcmul", a, c);
  return term(a, a.builder->pointwise("aten::addcmul", "", {a.value, b.value, c.value}, a.dtype(),
                                      {a.builder->integer(1)}));
}

Term maximum(Term a, Term b) {
  return binary("maximum", "", a, b);
}

Term minimum(Term a, Term b) {
  return binary("minimum", "", a, b);
}

Term where(Term condition, Term a, Term b) {
  expect_one_dtype("where", a, b);
  return term(a, a.builder->pointwise("aten::where", "self", {condition.value, a.value, b.value},
                                      a.dtype()));
}

Term compare(const char* name, Term a, Term b) {
  return binary(name, "Tensor", a, b, c10::kBool);
}

Term test(const char* name, Term x) {
  return term(x, x.builder->pointwise(qualified(name).c_str(), "", {x.value}, c10::kBool));
}

Term logical_and(Term a, Term b) {
  return binary("logical_and", "", a, b);
}

Term logical_or(Term a, Term b) {
  return binary("logical_or", "", a, b);
}

Term logical_not(Term a) {
  return unary("logical_not", a);
}

torch::jit::Value* accumulated_dtype(Term x) {
  const bool widened =
      c10::isIntegralType(x.dtype(), /*includeBool=*/true) && x.dtype() != c10::kLong;
  return widened ? x.builder->integer(int64_t(x.dtype())) : x.builder->none();
}

Term sum(Term x, c10::IntArrayRef dims, bool keepdim) {
  if (is_single(x)) return x + 0;
  return term(x, x.builder->reduce("aten::sum", "dim_IntList", x.value, dims, keepdim, x.dtype(),
                                   {accumulated_dtype(x)}));
}

Term amax(Term x, c10::IntArrayRef dims, bool keepdim) {
  if (is_single(x)) return x;
  return term(x, x.builder->reduce("aten::amax", "", x.value, dims, keepdim, x.dtype()));
}

Term amin(Term x, c10::IntArrayRef dims, bool keepdim) {
  if (is_single(x)) return x;
  return term(x, x.builder->reduce("aten::amin", "", x.value, dims, keepdim, x.dtype()));
}

Term squeeze(Term x, c10::IntArrayRef dims) {
  TensorInfo info = x.info();
  for (size_t i = info.sizes.size(); i-- > 0;) {
    if (std::find(dims.begin(), dims.end(), int64_t(i)) == dims.end()) continue;
    info.sizes.erase(info.sizes.begin() + int64_t(i));
    info.strides.erase(info.strides.begin() + int64_t(i));
  }
  return view(x, info.sizes, info.strides);
}

Term scatter_view(Term base, Term source, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                  int64_t offset) {
  GraphBuilder& builder = *base.builder;
  return {&builder, builder.call("aten::as_strided_scatter", "",
                                 {base.value, source.value, builder.integers(sizes),
                                  builder.integers(strides), builder.integer(offset)},
                                 base.info())};
}

}  // namespace torch_lazy
