// A way to a backend for those who have a compiler of graphs: the core cuts out the parts of a
// window that the compiler takes, as large as what lies between them allows, and does the rest:
// writes, memory, the life of values, copies, errors, and what the compiler does not take.
//
// Calls are as for a table of operators (backend/operator_table.h), and beside them views inside of
// a part: aten::permute, aten::reshape, aten::slice.Tensor and aten::expand.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "backend/operator_table.h"

namespace torch::jit {
struct Graph;
}  // namespace torch::jit

namespace torch_lazy {

struct SubgraphCall {
  // TorchScript, straight and functional. Constants, and lists of tensors, are nodes; numbers in a
  // tensor's place are 0-dim constants. Attribute `overload` names the operator of a node where
  // TorchScript's own choice is another: ask operator_of(node) (ir/node_operator.h). Every tensor
  // has a type with dtype and sizes; strides are those of inputs and outputs only.
  std::shared_ptr<torch::jit::Graph> graph;
  std::vector<TensorDescription> inputs;  // views, expanded ones too
  std::vector<TensorDescription>
      results;  // memory of their own, not contiguous where eager's is not
};

// Both are called on the background thread, while a window is compiled.
struct GraphCompiler {
  // Whether the call can be part of a graph.
  std::function<bool(const OperatorCall& call)> supports;
  // The command that runs the graph: given addresses of the inputs, then of the results; see
  // DeviceCommand. An empty one refuses: the calls are then made one by one. What it raises makes
  // the window fall back to `reference`.
  std::function<DeviceCommand(const SubgraphCall& call)> compile;
};

}  // namespace torch_lazy
