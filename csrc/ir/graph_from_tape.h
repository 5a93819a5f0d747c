// A recorded window as a TorchScript graph.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "ir/place_inputs.h"
#include "tape/dynamic_scalars.h"
#include "tape/tape.h"

namespace torch::jit {
struct Graph;
}

namespace torch_lazy {

struct WindowGraph {
  std::shared_ptr<torch::jit::Graph> graph;
  std::vector<WindowInput> inputs;  // of graph input i
  // Graph input inputs.size() + i is a 0-dim double on the CPU: this of the tape's all_words().
  std::vector<uint32_t> numbers;
  std::vector<uint32_t> output_storages;  // graph output i is the root value of this storage slot
  // The tape operation that node i of graph->nodes() stands for or serves (constants, lists).
  std::vector<uint32_t> operations;
};

// Every operation becomes one node of its own operator, in order, in-place and view operators as
// they were called. Beside them stand only prim::Constant, prim::ListConstruct, prim::ListUnpack,
// prim::AutogradZero (an undefined tensor passed where a Tensor is declared), aten::ScalarImplicit
// (a bool or a dynamic scalar passed as Scalar), aten::_to_copy (a dynamic scalar passed as
// Tensor, in the operation's own dtype), and aten::alias, aten::_conj, aten::_neg_view where an
// argument was not passed with the metadata of its value.
//
// `device` is where the tensors live, those of the CPU apart.
//
// Every tensor value has a complete type, or is marked undefined. Inputs are plain: their conj and
// neg bits are off, and a node that was passed one with a bit on gets it through aten::_conj.
//
// The root value of a storage is the first that an operation made on it. Storages of inputs have
// none: they are written in place. `live_storages` is by storage slot and may be shorter than
// the tape's count.
//
// A dynamic scalar is an input, %number0 and so on, in the order of first use; what the tape holds
// in its place is not looked at.
//
// Raises for an operation that TorchScript cannot express, naming its operator.
WindowGraph graph_from_tape(const Tape& tape, const std::vector<bool>& live_storages,
                            const DynamicScalars& dynamic_scalars, c10::Device device);

}  // namespace torch_lazy
