#include "passes/cat_in_kernels.h"

#include <torch/csrc/jit/ir/ir.h>

#include <algorithm>
#include <vector>

#include "ops/primitive.h"
#include "passes/fusable.h"
#include "passes/graph_builder.h"

namespace torch_lazy {
namespace {

using torch::jit::Node;
using torch::jit::Value;

// Elements of a row of the result, along the dimension and those denser. Of 100,000 rows of two
// columns ATen's takes 5 times as long as two kernels (one core of a Zen 3), of eight columns in
// two pieces twice as long, of fifteen as long.
constexpr int64_t kLongestRow = 8;

bool is_short_cat(const Node& node) {
  if (node.kind() != c10::aten::cat || node.hasAttribute(kLibraryAttribute)) return false;
  const auto dim = constant_value(node.input(1));
  const Node& pieces = *node.input(0)->node();
  if (!dim || !dim->isInt() || pieces.kind() != c10::prim::ListConstruct ||
      !has_complete_type(node.output()))
    return false;
  const TensorInfo whole = info_of(node.output());
  if (!primitive::has_type(whole.dtype) || whole.dims() == 0 || whole.elements() == 0) return false;
  const auto along = size_t(dim->toInt() < 0 ? dim->toInt() + whole.dims() : dim->toInt());
  if (whole.sizes[along] * whole.strides[along] > kLongestRow) return false;
  return std::ranges::all_of(pieces.inputs(), [&](const Value* piece) {
    if (!has_complete_type(piece)) return false;
    const TensorInfo part = info_of(piece);
    return part.dtype == whole.dtype && part.dims() == whole.dims() && part.elements() > 0;
  });
}

// For one reader, in memory that it may have anywhere.
bool is_made_there(const Value* piece) {
  if (piece->uses().size() != 1) return false;
  const Node& maker = *piece->node();
  if (maker.kind() != c10::aten::as_strided) return is_for_kernels(maker) || is_short_cat(maker);
  const Value* const base = maker.input(0);
  return info_of(base).elements() == info_of(piece).elements() && is_made_there(base);
}

}  // namespace

std::shared_ptr<torch::jit::Graph> cat_in_kernels(std::shared_ptr<torch::jit::Graph> graph,
                                                  c10::IntArrayRef input_offsets) {
  std::vector<Node*> cats;
  for (Node* const node : graph->nodes())
    if (is_short_cat(*node)) cats.push_back(node);
  if (cats.empty()) return graph;
  GraphBuilder builder(*graph, input_offsets);
  for (Node* const cat : cats) {
    Node* const pieces = cat->input(0)->node();
    builder.insert_before(pieces);
    for (size_t i = 0; i < pieces->inputs().size(); ++i) {
      Value* const piece = pieces->input(i);
      if (is_made_there(piece)) continue;
      TensorInfo copy = info_of(piece);
      copy.strides = contiguous_strides(copy.sizes);
      pieces->replaceInput(i, builder.clone(piece, copy));
    }
  }
  builder.order_constants();
  return graph;
}

}  // namespace torch_lazy
