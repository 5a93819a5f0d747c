#include "passes/multiply_in_kernels.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/node_operator.h"
#include "passes/decompose_rules.h"

namespace torch_lazy {
namespace {

using c10::ScalarType;
using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

// Work is counted in vector instructions, of which a library's large products need a third. This
// much takes a kernel as long as a library takes with its call, measured on Zen 4 and MKL; of a
// batch each matrix adds to it.
constexpr double kWorkOfCall = 1200;
constexpr double kWorkOfMatrix = 200;
// oneDNN's calls, which reduced floating types take, cost more, and ATen's loops over integers
// have no vectors.
constexpr double kReducedFactor = 8;
constexpr double kIntegerFactor = 16;
// A kernel that computes so many rows at a time, up to eight, loads what they share once
// (codegen/choose_jam.h), and then keeps up with libraries, up to so many multiplications, behind
// which it would want blocks for the caches. On Zen 5 it takes .25 to .65 of ATen's time, of floats
// as much as oneDNN's AVX-512 code at the most, and of halves, which ATen multiplies one by one,
// .02 to .1. For bfloat16 oneDNN has instructions of the processor.
constexpr int64_t kLeastTogether = 4;
constexpr int kLeastLanesTogether = 8;
constexpr int64_t kMostCopiedBytes = int64_t{1} << 20;
constexpr double kMostOfTogether = 1 << 24, kMostOfBFloat16 = 1 << 20;
// A product with so few rows or columns is bound by memory, whoever computes it.
constexpr int64_t kFew = 4;
// Unless a matrix is read down its columns, block by block, and does not stay near.
constexpr int64_t kNearBytes = int64_t{512} * 1024;
// Of a step that transposes a tile of memory, as steps of few columns do; of a sum over the lanes
// of a vector.
constexpr double kTileFactor = 2;
constexpr int64_t kWidestTile = 8;  // as in codegen/loop_analysis.h
constexpr double kOverLanesWork = 4;
// Fewer results than this of a long sum leave cores idle.
constexpr int64_t kFewResults = 16;
constexpr int64_t kLongSum = 65536;

// a: [batch,] rows, inner. b: [batch,] inner, columns.
struct Operands {
  const TensorInfo& a;
  const TensorInfo& b;

  int64_t batch() const { return a.dims() == 3 ? a.sizes[0] : 1; }
  int64_t rows() const { return a.sizes[size_t(a.dims() - 2)]; }
  int64_t inner() const { return a.sizes.back(); }
  int64_t columns() const { return b.sizes.back(); }
};

// Of one product of the batch. A vector of elements of 8 bytes is two.
double work_of(const Operands& product, int lanes) {
  const double registers = std::max(1.0, double(c10::elementSize(product.a.dtype)) / 4);
  const auto vectors = [&](int64_t elements) {
    return std::ceil(double(elements) / lanes) * registers;
  };
  const double rows = double(product.rows()), inner = double(product.inner());
  const double along_columns = rows * vectors(product.columns()) * inner;
  if (product.b.strides.back() == 1) return along_columns;
  if (product.inner() <= kWidestTile) return kTileFactor * along_columns;
  return rows * double(product.columns()) * (kOverLanesWork + vectors(product.inner()));
}

// `inner`: the dimension that is summed.
bool is_read_along(const TensorInfo& matrix, size_t inner) {
  const size_t last = matrix.sizes.size() - 1;
  const int64_t bytes =
      matrix.sizes[last - 1] * matrix.sizes[last] * int64_t(c10::elementSize(matrix.dtype));
  return matrix.strides[inner] == 1 || bytes <= kNearBytes;
}

bool is_bound_by_memory(const Operands& product) {
  if (product.inner() == 1) return true;
  const int64_t results = product.batch() * product.rows() * product.columns();
  if (results > 1 && results < kFewResults && product.inner() >= kLongSum) return false;
  const size_t last = product.a.sizes.size() - 1;
  return std::min(product.rows(), product.columns()) <= kFew && is_read_along(product.a, last) &&
         is_read_along(product.b, last - 1);
}

// Whether a copy of the right side with its columns side by side is made for little, and the
// product reads it from near. Of elements of 8 bytes and of 1 it has not been measured.
bool may_be_copied(const TensorInfo& matrix) {
  const int64_t element = int64_t(c10::elementSize(matrix.dtype));
  const bool is_measured = element == 4 || c10::isReducedFloatingType(matrix.dtype);
  return is_measured && matrix.elements() * element <= kMostCopiedBytes &&
         std::ranges::find(matrix.strides, 0) == matrix.strides.end();
}

// Whether rows are computed together, with vectors along the columns of `b`, or of a copy of it:
// the rows for which a copy does not pay are bound by memory.
bool has_rows_together(const Operands& product, int lanes) {
  const ScalarType dtype = product.a.dtype;
  const bool is_fit = c10::isIntegralType(dtype, /*includeBool=*/false) ||
                      (c10::isFloatingType(dtype) && !c10::isFloat8Type(dtype));
  return lanes >= kLeastLanesTogether && is_fit && product.rows() >= kLeastTogether &&
         product.columns() > kFew && (product.b.strides.back() == 1 || may_be_copied(product.b));
}

bool pays(const Operands& product, int lanes) {
  if (product.a.elements() == 0 || product.b.elements() == 0) return false;
  if (is_bound_by_memory(product)) return true;
  const ScalarType dtype = product.a.dtype;
  if (has_rows_together(product, lanes)) {
    const double most = dtype == ScalarType::BFloat16 ? kMostOfBFloat16 : kMostOfTogether;
    return double(product.a.elements()) * double(product.columns()) <= most;
  }
  const double factor = c10::isReducedFloatingType(dtype) ? kReducedFactor
                        : c10::isFloatingType(dtype)      ? 1
                                                          : kIntegerFactor;
  const double batch = double(product.batch());
  return batch * work_of(product, lanes) <= factor * (kWorkOfCall + (batch - 1) * kWorkOfMatrix);
}

// With the sizes of the product's space, in the dtype it is computed in: a cast that runs over the
// same elements as the product is part of its kernel.
Term operand(Decomposition& d, Term matrix, int64_t position, c10::IntArrayRef sizes) {
  Term term = unsqueeze(matrix, {position});
  if (term.dtype() == d.compute()) return term;
  term.value = d.builder().expand(term.value, sizes);
  return term.to(d.compute());
}

struct Options {
  int lanes;
  // Of matrices whose columns are far apart: copies that have them side by side. Nothing replaces a
  // copy, nor fails once one is made.
  std::unordered_map<const Value*, Value*>& copies;
};

Term with_columns_side_by_side(Decomposition& d, size_t index, const Options& options) {
  const Term matrix = d.tensor(index);
  Value*& copy = options.copies[matrix.value];
  if (!copy || copy->node()->input(0) != matrix.value) {  // or that of a value that is no more
    TensorInfo type = matrix.info();
    type.strides = contiguous_strides(type.sizes);
    copy = d.builder().clone(matrix.value, type);
  }
  return {&d.builder(), copy};
}

// Of the arguments `first` and the one behind it.
std::optional<Term> product_of(Decomposition& d, size_t first, const Options& options) {
  const TensorInfo a = d.tensor(first).info(), b = d.tensor(first + 1).info();
  if (a.dtype == c10::kBool || a.dtype != b.dtype || !pays({a, b}, options.lanes))
    return std::nullopt;
  const int64_t last = a.dims();
  std::vector<int64_t> sizes = a.sizes;
  sizes.push_back(b.sizes.back());
  const bool copies = b.strides.back() != 1 && !is_bound_by_memory({a, b}) &&
                      has_rows_together({a, b}, options.lanes);
  const Term columns =
      copies ? with_columns_side_by_side(d, first + 1, options) : d.tensor(first + 1);
  const Term products =
      operand(d, d.tensor(first), last, sizes) * operand(d, columns, last - 2, sizes);
  // Libraries sum nothing then, and keep the sign of zeros; ATen's loop over batches does not.
  if (a.sizes.back() == 1 && last == 2) return squeeze(products, {last - 1});
  return sum(products, {last - 1}, /*keepdim=*/false);
}

// mm, bmm.
bool finish_product(Decomposition& d, const Options& options) {
  const std::optional<Term> product = product_of(d, 0, options);
  return product && d.finish(*product);
}

// mv and dot: b is a vector.
bool finish_vector_product(Decomposition& d, const Options& options) {
  const TensorInfo a = d.tensor(0).info();
  const bool is_matrix = a.dims() == 2;
  const TensorInfo row{a.dtype, a.device, {1, a.sizes.back()}, {a.sizes.back(), a.strides.back()}};
  const TensorInfo b = d.tensor(1).info();
  const TensorInfo column{b.dtype, b.device, {b.sizes[0], 1}, {b.strides[0], 1}};
  if (a.dtype == c10::kBool || a.dtype != b.dtype ||
      !pays({is_matrix ? a : row, column}, options.lanes))
    return false;
  Term vector = d.tensor(1);
  if (is_matrix) vector.value = d.builder().expand(vector.value, a.sizes);
  return d.finish(sum(d.tensor(0).to(d.compute()) * vector.to(d.compute()), {a.dims() - 1},
                      /*keepdim=*/false));
}

// addmm, baddbmm: beta * self + alpha * product, where a beta of 0 ignores self. An alpha of 0
// would ignore the product.
bool finish_product_and_sum(Decomposition& d, const Options& options) {
  if (!d.is_number(3) || !d.is_number(4) || d.is(4, 0)) return false;
  std::optional<Term> result = product_of(d, 1, options);
  if (!result) return false;
  if (!d.is(4, 1)) result = d.operand(4, result->dtype()) * *result;
  if (d.is(3, 0)) return d.finish(*result);
  Term added = d.operand(0, result->dtype());
  if (!d.is(3, 1)) added = d.operand(3, result->dtype()) * added;
  return d.finish(added + *result);
}

using ProductRule = bool (*)(Decomposition&, const Options&);

ProductRule find_product_rule(const Node& node) {
  static const std::unordered_map<std::string, ProductRule> rules = {
      {"aten::mm", finish_product},
      {"aten::bmm", finish_product},
      {"aten::mv", finish_vector_product},
      {"aten::dot", finish_vector_product},
      {"aten::addmm", finish_product_and_sum},
      {"aten::baddbmm", finish_product_and_sum}};
  if (!node.kind().is_aten()) return nullptr;
  const auto rule = rules.find(operator_name(&node));
  return rule == rules.end() ? nullptr : rule->second;
}

}  // namespace

std::shared_ptr<Graph> multiply_in_kernels(std::shared_ptr<Graph> graph,
                                           c10::IntArrayRef input_offsets, int lanes) {
  std::unordered_map<const Value*, Value*> copies;
  const Options options{lanes, copies};
  const auto rule_of = [&](const Node& node) -> Rule {
    const ProductRule rule = find_product_rule(node);
    if (!rule) return {};
    return [=](Decomposition& d) { return rule(d, options); };
  };
  return decompose_by(rule_of, std::move(graph), input_offsets);
}

}  // namespace torch_lazy
