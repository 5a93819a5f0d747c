#include "passes/scan_in_kernels.h"

#include <torch/csrc/jit/ir/ir.h>

#include "ops/primitive.h"
#include "passes/graph_builder.h"

namespace torch_lazy {
namespace {

bool has_numbers(const torch::jit::Value* value) {
  if (!has_complete_type(value)) return false;
  const TensorInfo info = info_of(value);
  return info.dims() > 0 && info.elements() > 0 && primitive::has_type(info.dtype) &&
         !c10::isFloat8Type(info.dtype);
}

}  // namespace

std::shared_ptr<torch::jit::Graph> scan_in_kernels(std::shared_ptr<torch::jit::Graph> graph) {
  for (torch::jit::Node* const node : graph->nodes()) {
    if (node->kind() != c10::aten::cumsum && node->kind() != c10::aten::cumprod) continue;
    if (node->hasAttribute(kLibraryAttribute) || node->inputs().size() != 3) continue;
    const auto dim = constant_value(node->input(1));
    if (dim && dim->isInt() && has_numbers(node->input(0)) && has_numbers(node->output()) &&
        info_of(node->output()).dtype != c10::kBool)
      node->i_(kKernelAttribute, 1);
  }
  return graph;
}

}  // namespace torch_lazy
