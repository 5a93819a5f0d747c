#include "passes/scan_in_kernels.h"

#include <torch/csrc/jit/ir/ir.h>

#include "ops/primitive.h"
#include "passes/graph_builder.h"

namespace torch_lazy {
namespace {

// Elements of a window's scan that take a kernel no longer than a call takes to begin.
constexpr int64_t kFewElements = 2048;
// Rows of contiguous elements: up to so many they are steps that are written out, with the lanes
// across rows; from so many 4-byte values on they fill the lanes along themselves. Between, ATen's
// loop computes several rows at a time.
constexpr int64_t kShortRow = 8;
constexpr int64_t kLongRow = 64;
// As many columns as fill half of a vector.
constexpr int64_t kColumns = 8;

bool is_scannable(const torch::jit::Value* value) {
  if (!has_complete_type(value)) return false;
  const TensorInfo info = info_of(value);
  return info.dims() > 0 && info.elements() > 0 && primitive::has_type(info.dtype) &&
         !c10::isFloat8Type(info.dtype);
}

// Whether a kernel takes less time than ATen.
bool is_worth_it(const TensorInfo& scanned, int64_t dim) {
  const auto at = size_t(dim < 0 ? dim + scanned.dims() : dim);
  int64_t columns = 1;
  for (size_t d = at + 1; d < scanned.sizes.size(); ++d) columns *= scanned.sizes[d];
  if (columns >= kColumns || scanned.elements() <= kFewElements) return true;
  const int64_t along = scanned.sizes[at], values = c10::elementSize(scanned.dtype) == 8 ? 2 : 1;
  return columns == 1 && (along <= kShortRow || along >= values * kLongRow);
}

}  // namespace

std::shared_ptr<torch::jit::Graph> scan_in_kernels(std::shared_ptr<torch::jit::Graph> graph) {
  for (torch::jit::Node* const node : graph->nodes()) {
    if (node->kind() != c10::aten::cumsum && node->kind() != c10::aten::cumprod) continue;
    if (node->hasAttribute(kLibraryAttribute) || node->inputs().size() != 3) continue;
    const auto dim = constant_value(node->input(1));
    if (!dim || !dim->isInt() || !is_scannable(node->input(0)) || !is_scannable(node->output()))
      continue;
    const TensorInfo scanned = info_of(node->output());
    if (scanned.dtype != c10::kBool && is_worth_it(scanned, dim->toInt()))
      node->i_(kKernelAttribute, 1);
  }
  return graph;
}

}  // namespace torch_lazy
