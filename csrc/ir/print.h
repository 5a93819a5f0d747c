// Graphs and types as text.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "base/api.h"

namespace torch::jit {
struct Graph;
struct Node;
}  // namespace torch::jit

namespace torch_lazy {

// TorchScript, each operation followed by the line that recorded it:
//   %add_3 : Float(2, 3, strides=[3, 1], device=cpu) = aten::add(%in0, %in1, %4) # train.py:12:8
TORCH_LAZY_MODULE_API std::string print_graph(const torch::jit::Graph& graph);

// "train.py:12:8"; empty where the line is unknown.
std::string recorded_at(const torch::jit::Node& node);

// "Float(2, 3, strides=[3, 1], device=cpu)"; "Undefined".
std::string describe(const at::Tensor& tensor);

}  // namespace torch_lazy
