#include "backend/cpu/choose_products.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "passes/graph_builder.h"
#include "passes/layout.h"
#include "passes/simplify_algebra.h"

namespace torch_lazy {
namespace {

using torch::jit::Node;
using torch::jit::Value;

// Multiplications that take MKL as long as oneDNN takes before it multiplies, on the fastest core
// that was at hand. Whether oneDNN computes what is larger is measured (product_choice.h).
constexpr int64_t kLeastOnednnWork = int64_t{3} << 18;
// Products with a shorter dimension are bound by memory.
constexpr int64_t kLeastSize = 4;

// Whether rows or columns of a matrix, or of each of a batch, lie one after the other.
bool is_plain(const TensorInfo& matrices) {
  if (!is_dense(matrices.sizes, matrices.strides)) return false;
  const size_t dims = matrices.sizes.size();
  return dims == 2 || matrices.sizes[0] == 1 ||
         matrices.strides[0] == matrices.sizes[1] * matrices.sizes[2];
}

// Of a product of inputs `first` and `first + 1`.
bool may_pay(const Node& node, size_t first) {
  const TensorInfo a = info_of(node.input(first)), b = info_of(node.input(first + 1));
  if (a.dtype != c10::ScalarType::Float || b.dtype != a.dtype || !is_plain(a) || !is_plain(b))
    return false;
  const int64_t rows = a.sizes[a.sizes.size() - 2], inner = a.sizes.back(),
                columns = b.sizes.back();
  return std::min({rows, inner, columns}) >= kLeastSize &&
         a.elements() * columns >= kLeastOnednnWork;
}

// What the node becomes; null: it stays.
const char* choice_of(const Node& node) {
  if (node.hasAttribute(kLibraryAttribute)) return nullptr;
  if (node.kind() == c10::aten::mm) return may_pay(node, 0) ? "torch_lazy::onednn_mm" : nullptr;
  if (node.kind() == c10::aten::bmm) return may_pay(node, 0) ? "torch_lazy::onednn_bmm" : nullptr;
  const bool is_sum = is_plain_addmm(node) &&
                      info_of(node.input(0)).dtype == c10::ScalarType::Float && may_pay(node, 1);
  return is_sum ? "torch_lazy::onednn_addmm" : nullptr;
}

}  // namespace

std::shared_ptr<torch::jit::Graph> choose_products(std::shared_ptr<torch::jit::Graph> graph) {
  std::vector<std::pair<Node*, const char*>> found;
  for (Node* const node : graph->nodes())
    if (const char* const choice = choice_of(*node)) found.emplace_back(node, choice);
  if (found.empty()) return graph;
  GraphBuilder builder(*graph);
  for (const auto& [node, choice] : found) {
    const size_t tensors = node->kind() == c10::aten::addmm ? 3 : 2;
    builder.insert_before(node);
    Value* const product =
        builder.call(choice, "", node->inputs().slice(0, tensors), info_of(node->output()));
    node->output()->replaceAllUsesWith(product);
    node->destroy();
  }
  return graph;
}

}  // namespace torch_lazy
