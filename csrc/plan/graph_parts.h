// The parts of a graph that a backend's compiler of graphs takes, compiled.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "backend/graph_compiler.h"
#include "passes/partition.h"

namespace torch_lazy {

struct CompiledPart {
  GraphPart part;
  DeviceCommand command;
};

using CompiledItem = std::variant<CompiledPart, NodeId>;

// In the order they run. Numbers and views are no items. A part that the compiler refuses is
// counted as a fallback, and its nodes run one by one. `input_offsets`: the storage offset, in
// elements, of each graph input; `device`: of the window's tensors.
std::vector<CompiledItem> compile_parts(const CoreGraph& graph, const GraphCompiler& compiler,
                                        const std::vector<int64_t>& input_offsets,
                                        c10::Device device);

// "graph of 3 operators"
std::string name_of(const GraphPart& part);

// Counts a fallback: what the backend does not take of a window runs by ATen, or on the CPU where
// PyTorch has no kernels for the device.
void count_left_over(const std::string& name);

TensorDescription describe(const CoreValue& value);

// A tensor of the CPU where the window's are on another device: a number that the program changes.
bool is_on_cpu(const CoreValue& value, c10::Device device);

}  // namespace torch_lazy
