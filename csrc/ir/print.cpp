#include "ir/print.h"

#include <ATen/core/jit_type.h>
#include <torch/csrc/jit/ir/ir.h>

#include <sstream>

namespace torch_lazy {

std::string print_graph(const torch::jit::Graph& graph) {
  return graph.toString(/*print_source_locations=*/true);
}

std::string recorded_at(const torch::jit::Node& node) {
  const auto where = node.sourceRange().file_line_col();
  if (!where) return {};
  const auto& [file, line, column] = *where;
  return file + ":" + std::to_string(line) + ":" + std::to_string(column);
}

std::string describe(const at::Tensor& tensor) {
  if (!tensor.defined()) return "Undefined";
  std::ostringstream text;
  text << *c10::TensorType::create(tensor)->withRequiresGrad(std::nullopt);
  return text.str();
}

}  // namespace torch_lazy
