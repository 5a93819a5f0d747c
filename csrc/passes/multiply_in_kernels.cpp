#include "passes/multiply_in_kernels.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ir/node_operator.h"
#include "passes/decompose_rules.h"

namespace torch_lazy {
namespace {

using c10::ScalarType;
using torch::jit::Graph;
using torch::jit::Node;

// Work is counted in vector instructions, of which a library's large products need a third. This
// much takes a kernel as long as a library takes with its call, measured on Zen 4 and MKL; of a
// batch each matrix adds to it.
constexpr double kWorkOfCall = 1200;
constexpr double kWorkOfMatrix = 200;
// oneDNN's calls, which reduced floating types take, cost more, and ATen's loops over integers
// have no vectors.
constexpr double kReducedFactor = 8;
constexpr double kIntegerFactor = 16;
// A product with so few rows or columns is bound by memory, whoever computes it.
constexpr int64_t kFew = 4;
// Unless a matrix is read down its columns, block by block, and does not stay near.
constexpr int64_t kNearBytes = 512 * 1024;
// Of a step that transposes a tile of memory; of a sum over the lanes of a vector.
constexpr double kTileFactor = 2;
constexpr double kOverLanesWork = 4;
constexpr int64_t kWidestTile = 8;

// a: [batch,] rows, inner. b: [batch,] inner, columns.
struct Operands {
  const TensorInfo& a;
  const TensorInfo& b;

  int64_t batch() const { return a.dims() == 3 ? a.sizes[0] : 1; }
  int64_t rows() const { return a.sizes[size_t(a.dims() - 2)]; }
  int64_t inner() const { return a.sizes.back(); }
  int64_t columns() const { return b.sizes.back(); }
};

// Of one product of the batch.
double work_of(const Operands& product, int lanes) {
  const auto vectors = [&](int64_t elements) { return std::ceil(double(elements) / lanes); };
  const double rows = double(product.rows()), inner = double(product.inner());
  const double along_columns = rows * vectors(product.columns()) * inner;
  if (product.b.strides.back() == 1) return along_columns;
  if (product.inner() <= kWidestTile) return kTileFactor * along_columns;
  return rows * double(product.columns()) * (kOverLanesWork + vectors(product.inner()));
}

bool is_bound_by_memory(const Operands& product) {
  if (product.inner() == 1) return true;
  const bool few_rows = product.rows() <= product.columns();
  if (std::min(product.rows(), product.columns()) > kFew) return false;
  const TensorInfo& matrix = few_rows ? product.b : product.a;
  const int64_t stride = matrix.strides[size_t(matrix.dims() - (few_rows ? 2 : 1))];
  const int64_t bytes = product.inner() * std::max(product.rows(), product.columns()) *
                        int64_t(c10::elementSize(matrix.dtype));
  return stride == 1 || bytes <= kNearBytes;
}

bool pays(const Operands& product, int lanes) {
  if (product.a.elements() == 0 || product.b.elements() == 0) return false;
  if (is_bound_by_memory(product)) return true;
  const ScalarType dtype = product.a.dtype;
  const double factor = c10::isReducedFloatingType(dtype) ? kReducedFactor
                        : c10::isFloatingType(dtype)      ? 1
                                                          : kIntegerFactor;
  const double batch = double(product.batch());
  return batch * work_of(product, lanes) <= factor * (kWorkOfCall + (batch - 1) * kWorkOfMatrix);
}

// Of the arguments `first` and the one behind it, in the dtype it is computed in.
std::optional<Term> product_of(Decomposition& d, size_t first, int lanes) {
  const TensorInfo a = d.tensor(first).info(), b = d.tensor(first + 1).info();
  if (a.dtype == c10::kBool || a.dtype != b.dtype || !pays({a, b}, lanes)) return std::nullopt;
  const int64_t last = a.dims();
  return sum(unsqueeze(d.operand(first, d.compute()), {last}) *
                 unsqueeze(d.operand(first + 1, d.compute()), {last - 2}),
             {last - 1}, /*keepdim=*/false);
}

// mm, bmm.
bool finish_product(Decomposition& d, int lanes) {
  const std::optional<Term> product = product_of(d, 0, lanes);
  return product && d.finish(*product);
}

// mv and dot: b is a vector.
bool finish_vector_product(Decomposition& d, int lanes) {
  const TensorInfo a = d.tensor(0).info();
  const bool is_matrix = a.dims() == 2;
  const TensorInfo row{a.dtype, a.device, {1, a.sizes.back()}, {a.sizes.back(), a.strides.back()}};
  const TensorInfo b = d.tensor(1).info();
  const TensorInfo column{b.dtype, b.device, {b.sizes[0], 1}, {b.strides[0], 1}};
  if (a.dtype == c10::kBool || a.dtype != b.dtype || !pays({is_matrix ? a : row, column}, lanes))
    return false;
  Term vector = d.operand(1, d.compute());
  if (is_matrix) vector = unsqueeze(vector, {0});
  return d.finish(sum(d.operand(0, d.compute()) * vector, {a.dims() - 1}, /*keepdim=*/false));
}

// addmm, baddbmm: beta * self + alpha * product, where a beta of 0 ignores self.
bool finish_product_and_sum(Decomposition& d, int lanes) {
  if (!d.is_number(3) || !d.is_number(4)) return false;
  std::optional<Term> result = product_of(d, 1, lanes);
  if (!result) return false;
  if (!d.is(4, 1)) result = d.operand(4, result->dtype()) * *result;
  if (d.is(3, 0)) return d.finish(*result);
  Term added = d.operand(0, result->dtype());
  if (!d.is(3, 1)) added = d.operand(3, result->dtype()) * added;
  return d.finish(added + *result);
}

using ProductRule = bool (*)(Decomposition&, int lanes);

ProductRule find_product_rule(const Node& node) {
  if (node.hasAttribute(kLibraryAttribute)) return nullptr;
  switch (node.kind()) {
    case c10::aten::mm:
    case c10::aten::bmm:
      return finish_product;
    case c10::aten::mv:
    case c10::aten::dot:
      return finish_vector_product;
    case c10::aten::addmm:
    case c10::aten::baddbmm:
      return finish_product_and_sum;
    default:
      return nullptr;
  }
}

}  // namespace

std::shared_ptr<Graph> multiply_in_kernels(std::shared_ptr<Graph> graph,
                                           c10::IntArrayRef input_offsets, int lanes) {
  const std::vector<Node*> nodes(graph->nodes().begin(), graph->nodes().end());
  if (std::none_of(nodes.begin(), nodes.end(),
                   [](const Node* node) { return find_product_rule(*node) != nullptr; }))
    return graph;
  GraphBuilder builder(*graph, input_offsets);
  // As in decompose: nodes go to the end of the graph in their order, or what they become does.
  for (Node* const node : nodes) {
    if (node->kind() == c10::prim::Constant) continue;
    const ProductRule rule = find_product_rule(*node);
    const auto multiply = [&](Decomposition& d) { return rule(d, lanes); };
    if (!rule || !decompose_node(builder, node, multiply)) node->moveBefore(graph->return_node());
  }
  builder.order_constants();
  return graph;
}

}  // namespace torch_lazy
