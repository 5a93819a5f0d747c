#include "backend/cpu/choose_products.h"

#include <algorithm>
#include <vector>

#include "passes/graph_builder.h"
#include "passes/layout.h"
#include "passes/simplify_algebra.h"

namespace torch_lazy {
namespace {

using torch::jit::Node;
using torch::jit::Value;

// Multiplications from which on oneDNN is faster, measured on Zen 4 with one and two threads among
// the other operators of a step; alone it is from 9 million on. Products with a dimension under
// four are bound by memory, and some take oneDNN twice the time.
constexpr int64_t kLeastWork = int64_t{20} << 20;
constexpr int64_t kLeastSize = 4;

// Of a product of inputs `first` and `first + 1`.
bool pays(const Node& node, size_t first) {
  const TensorInfo a = info_of(node.input(first)), b = info_of(node.input(first + 1));
  if (a.dtype != c10::ScalarType::Float || b.dtype != a.dtype || !is_dense(a.sizes, a.strides) ||
      !is_dense(b.sizes, b.strides))
    return false;
  const int64_t rows = a.sizes[0], inner = a.sizes[1], columns = b.sizes[1];
  return std::min({rows, inner, columns}) >= kLeastSize && rows * inner * columns >= kLeastWork;
}

bool can_choose(const Node& node) {
  if (node.hasAttribute(kLibraryAttribute)) return false;
  if (node.kind() == c10::aten::mm) return pays(node, 0);
  return is_plain_addmm(node) && info_of(node.input(0)).dtype == c10::ScalarType::Float &&
         pays(node, 1);
}

}  // namespace

std::shared_ptr<torch::jit::Graph> choose_products(std::shared_ptr<torch::jit::Graph> graph) {
  std::vector<Node*> found;
  for (Node* const node : graph->nodes())
    if (can_choose(*node)) found.push_back(node);
  if (found.empty()) return graph;
  GraphBuilder builder(*graph);
  for (Node* const node : found) {
    const bool sum = node->kind() == c10::aten::addmm;
    builder.insert_before(node);
    Value* const product =
        builder.call(sum ? "torch_lazy::onednn_addmm" : "torch_lazy::onednn_mm", "",
                     node->inputs().slice(0, sum ? 3 : 2), info_of(node->output()));
    node->output()->replaceAllUsesWith(product);
    node->destroy();
  }
  return graph;
}

}  // namespace torch_lazy
