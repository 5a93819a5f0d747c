#include "passes/simplify_cats.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "passes/choose_joins.h"
#include "passes/fusable.h"
#include "passes/simplify_algebra.h"

namespace torch_lazy {
namespace {

using torch::jit::Node;
using torch::jit::Value;

// Each part gets nodes, and mostly a kernel, of its own.
constexpr size_t kMostParts = 4;

// Nodes that were replaced have no uses and will be removed.
size_t live_uses(const Value* value) {
  return size_t(
      std::count_if(value->uses().begin(), value->uses().end(), [](const torch::jit::Use& use) {
        return use.user->outputs().empty() || use.user->hasUses() ||
               use.user->kind() == c10::aten::copy_;
      }));
}

std::optional<Cat> small_cat(Value* value) {
  if (value->node()->kind() != c10::aten::cat || live_uses(value) != 1) return std::nullopt;
  std::optional<Cat> cat = plain_cat(*value->node());
  return cat && cat->parts.size() <= kMostParts ? cat : std::nullopt;
}

bool may_be_join(const Cat& cat);

// No kernel makes it: an input, a constant, the result of a library call, a view of these.
bool lies_in_memory(Value* value) {
  Node* const node = value->node();
  if (const std::optional<Cat> cat = small_cat(value); cat && may_be_join(*cat)) return false;
  if (node->kind() == c10::aten::as_strided) return lies_in_memory(node->input(0));
  if (node->kind().is_prim()) return true;
  return fusable_operator(node) == nullptr;
}

// Slices of it can be made without storing it first.
bool is_read_by_part(Value* value) {
  if (lies_in_memory(value)) return true;
  Node* const node = value->node();
  const bool joins = node->kind() == c10::aten::as_strided || node->kind() == c10::aten::cat;
  if (joins || value->uses().size() != 1) return false;
  const size_t operands = operand_count(*node);
  return std::all_of(node->inputs().begin(), node->inputs().begin() + int64_t(operands),
                     lies_in_memory);
}

// One kernel can compute it with what reads it; see choose_joins.h. Slices of it would be copies.
bool may_be_join(const Cat& cat) {
  const auto is_slice = [](const Value* part) {
    return part->node()->kind() == c10::aten::as_strided &&
           info_of(part).elements() < info_of(part->node()->input(0)).elements();
  };
  return row_behind_border(cat.info.sizes, cat.info.strides, cat.dim) >= kShortestRow &&
         std::ranges::all_of(cat.parts,
                             [&](Value* part) { return is_slice(part) || is_read_by_part(part); });
}

// Elements [begin, begin + size) of an operand along a dimension of the result, all where it has
// only one there.
Value* slice(GraphBuilder& builder, Value* operand, size_t rank, size_t dim, int64_t begin,
             int64_t size) {
  if (operand->node()->kind() == c10::prim::Constant) return operand;
  TensorInfo info = info_of(operand);
  const size_t missing = rank - info.sizes.size();
  if (dim < missing || info.sizes[dim - missing] == 1) return operand;
  info.sizes[dim - missing] = size;
  return builder.view(operand, info.sizes, info.strides, begin * info.strides[dim - missing]);
}

}  // namespace

std::optional<Cat> plain_cat(Node& node) {
  if (node.kind() != c10::aten::cat || !has_complete_type(node.output())) return std::nullopt;
  const auto dim = constant_value(node.input(1));
  Node& list = *node.input(0)->node();
  if (!dim || !dim->isInt() || list.kind() != c10::prim::ListConstruct) return std::nullopt;
  Cat cat{list.inputs().vec(), 0, info_of(node.output())};
  cat.dim = size_t(dim->toInt() < 0 ? dim->toInt() + cat.info.dims() : dim->toInt());
  const bool plain = std::ranges::all_of(cat.parts, [&](const Value* part) {
    if (!has_complete_type(part)) return false;
    const TensorInfo info = info_of(part);
    return info.dims() == cat.info.dims() && info.dtype == cat.info.dtype && info.elements() > 0;
  });
  return plain ? std::optional(std::move(cat)) : std::nullopt;
}

Value* cat_of_results(GraphBuilder& builder, Node* pointwise, size_t operands) {
  const TensorInfo result = info_of(pointwise->output());
  std::optional<Cat> cat;
  size_t at = 0;
  for (size_t i = 0; i < operands && !cat; ++i) {
    cat = small_cat(pointwise->input(i));
    at = i;
  }
  if (!cat || cat->info.sizes != result.sizes || result.sizes[cat->dim] < 2) return nullptr;
  for (size_t i = 0; i < operands; ++i)
    if (i != at && !is_read_by_part(pointwise->input(i))) return nullptr;
  std::vector<Value*> results;
  int64_t begin = 0;
  for (Value* const part : cat->parts) {
    const TensorInfo source = info_of(part);
    const int64_t size = source.sizes[cat->dim];
    std::vector<Value*> inputs = pointwise->inputs().vec();
    for (size_t i = 0; i < operands; ++i)
      inputs[i] =
          i == at ? part : slice(builder, inputs[i], result.sizes.size(), cat->dim, begin, size);
    TensorInfo made{result.dtype, result.device, source.sizes, {}};
    made.strides = pointwise_strides(made.sizes, {&source});
    results.push_back(builder.call_like(pointwise, inputs, made));
    begin += size;
  }
  return builder.cat(results, int64_t(cat->dim), result);
}

}  // namespace torch_lazy
