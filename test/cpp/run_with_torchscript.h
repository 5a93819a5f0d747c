// The oracle of tests on graphs of windows.
#pragma once

#include <torch/csrc/jit/runtime/interpreter.h>

#include <vector>

#include "ir/graph_from_tape.h"

namespace torch_lazy::tests {

// Runs the graph with TorchScript's own interpreter.
inline std::vector<at::Tensor> run_with_torchscript(const WindowGraph& window,
                                                    const std::vector<at::Tensor>& inputs) {
  torch::jit::Stack stack(inputs.begin(), inputs.end());
  torch::jit::Code code(window.graph, "window");
  torch::jit::InterpreterState(code).run(stack);
  std::vector<at::Tensor> outputs;
  for (const c10::IValue& value : stack) outputs.push_back(value.toTensor());
  return outputs;
}

}  // namespace torch_lazy::tests
