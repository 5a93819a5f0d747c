#include "passes/cat_in_kernels.h"

#include <torch/csrc/jit/ir/ir.h>

#include <optional>
#include <vector>

#include "ops/primitive.h"
#include "passes/fusable.h"
#include "passes/graph_builder.h"
#include "passes/simplify_cats.h"

namespace torch_lazy {
namespace {

using torch::jit::Node;
using torch::jit::Value;

// Elements of a row of the result, along the dimension and those denser. Of 100,000 rows of two
// columns ATen's takes 5 times as long as two kernels (one core of a Zen 3), of eight columns in
// two pieces twice as long, of fifteen as long.
constexpr int64_t kLongestRow = 8;

bool is_short_cat(Node& node) {
  if (node.hasAttribute(kLibraryAttribute)) return false;
  const std::optional<Cat> cat = plain_cat(node);
  return cat && primitive::has_type(cat->info.dtype) &&
         cat->info.sizes[cat->dim] * cat->info.strides[cat->dim] <= kLongestRow;
}

// Whether a kernel will make the piece in the cat's memory (assign_cat). Other readers than views
// find it there.
bool is_made_there(Value* piece) {
  Node& maker = *piece->node();
  if (is_view(piece)) {
    Value* const base = maker.input(0);
    return piece->uses().size() == 1 && base->uses().size() == 1 &&
           info_of(base).elements() == info_of(piece).elements() &&
           (is_for_kernels(*base->node()) || is_short_cat(*base->node()));
  }
  if (!is_for_kernels(maker)) return false;
  size_t lists = 0;
  for (const torch::jit::Use& use : piece->uses()) {
    const c10::Symbol reader = use.user->kind();
    if (reader == c10::prim::Return || reader == c10::aten::as_strided ||
        reader == c10::aten::copy_)
      return false;
    lists += reader == c10::prim::ListConstruct;
  }
  return lists == 1;
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
    builder.insert_before(cat);
    std::vector<Value*> pieces = cat->input(0)->node()->inputs().vec();
    bool copied = false;
    for (Value*& piece : pieces) {
      if (is_made_there(piece)) continue;
      TensorInfo copy = info_of(piece);
      copy.strides = contiguous_strides(copy.sizes);
      piece = builder.clone(piece, copy);
      copied = true;
    }
    if (!copied) continue;
    // Other cats may have the same list.
    Node* const before = cat->input(0)->node();
    cat->replaceInput(0, builder.list(pieces));
    if (!before->hasUses()) before->destroy();
  }
  builder.order_constants();
  return graph;
}

}  // namespace torch_lazy
