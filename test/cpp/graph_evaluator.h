// Runs a graph node by node through the dispatcher: the meaning of a graph, for comparing it before
// and after a pass. Holds the graph to its types: a result whose sizes or dtype differ from its
// value's type is an error, and one laid out otherwise is laid out as the type says.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/ir/irparser.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/argument_constant.h"
#include "ir/node_operator.h"
#include "ops/effects.h"

namespace torch_lazy::tests {

inline std::shared_ptr<torch::jit::Graph> parse_graph(const std::string& text) {
  auto graph = std::make_shared<torch::jit::Graph>();
  // Tensor constants are read as tensors of zeros without this.
  torch::jit::parseIR(text, graph.get(), /*parse_tensor_constants=*/true);
  return graph;
}

class GraphEvaluator {
 public:
  explicit GraphEvaluator(const torch::jit::Graph& graph) : graph_(graph) {}

  // Writes to inputs happen to the tensors given.
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs) {
    values_.clear();
    TORCH_CHECK(inputs.size() == graph_.inputs().size(), "the graph has ", graph_.inputs().size(),
                " inputs, ", inputs.size(), " were given");
    for (size_t i = 0; i < inputs.size(); ++i) values_[graph_.inputs()[i]] = inputs[i];
    for (const torch::jit::Node* node : graph_.nodes()) run(*node);
    std::vector<at::Tensor> outputs;
    for (const torch::jit::Value* output : graph_.outputs())
      outputs.push_back(values_.at(output).toTensor());
    return outputs;
  }

 private:
  void run(const torch::jit::Node& node) {
    if (node.kind() == c10::prim::Constant) {
      const bool integers = node.hasAttribute(c10::attr::value) &&
                            node.kindOf(c10::attr::value) == torch::jit::AttributeKind::is;
      values_[node.output()] =
          integers ? c10::IValue(node.is(c10::attr::value)) : *torch::jit::toIValue(node.output());
    } else if (node.kind() == c10::prim::AutogradZero) {
      values_[node.output()] = at::Tensor();
    } else if (node.kind() == c10::aten::ScalarImplicit) {
      values_[node.output()] = values_.at(node.input()).toTensor().item();
    } else if (node.kind() == c10::prim::ListConstruct) {
      c10::impl::GenericList list(
          node.output()->type()->expectRef<c10::ListType>().getElementType());
      for (const torch::jit::Value* input : node.inputs()) list.push_back(values_.at(input));
      values_[node.output()] = std::move(list);
    } else if (node.kind() == c10::prim::ListUnpack) {
      const auto list = values_.at(node.input()).toListRef();
      TORCH_CHECK(list.size() == node.outputs().size(), "a list of ", list.size(),
                  " is unpacked into ", node.outputs().size());
      const torch::jit::Value* made = node.input();
      const bool fresh =
          effects_of(operator_of(made->node())).returns[made->offset()].kind == ReturnKind::Fresh;
      for (size_t i = 0; i < list.size(); ++i)
        values_[node.output(i)] = fresh ? laid_out(*node.output(i), list[i]) : list[i];
    } else {
      call(node);
    }
  }

  void call(const torch::jit::Node& node) {
    const c10::OperatorHandle op = operator_of(&node);
    const Effects& effects = effects_of(op);
    torch::jit::Stack stack;
    for (size_t i = 0; i < node.inputs().size(); ++i)
      stack.push_back(argument_constant(values_.at(node.input(i)),
                                        op.schema().arguments().at(i).type(), c10::kCPU));
    op.callBoxed(stack);
    for (size_t i = 0; i < stack.size(); ++i) {
      const bool fresh = effects.returns[i].kind == ReturnKind::Fresh;
      values_[node.output(i)] = fresh ? laid_out(*node.output(i), stack[i]) : stack[i];
    }
  }

  static c10::IValue laid_out(const torch::jit::Value& value, const c10::IValue& made) {
    const auto type = value.type()->cast<c10::TensorType>();
    if (!type || !type->isComplete() || !made.isTensor()) return made;
    const at::Tensor tensor = made.toTensor();
    TORCH_CHECK(tensor.scalar_type() == *type->scalarType() &&
                    tensor.sizes() == c10::IntArrayRef(*type->sizes().concrete_sizes()),
                "%", value.debugName(), " of ", operator_name(value.node()), " is ",
                tensor.toString(), tensor.sizes(), ", its type says ", *type);
    const std::vector<int64_t> strides = *type->strides().concrete_sizes();
    if (tensor.strides() == c10::IntArrayRef(strides) && tensor.storage_offset() == 0) return made;
    return at::empty_strided(tensor.sizes(), strides, tensor.options()).copy_(tensor);
  }

  const torch::jit::Graph& graph_;
  std::unordered_map<const torch::jit::Value*, c10::IValue> values_;
};

inline std::vector<at::Tensor> evaluate(const torch::jit::Graph& graph,
                                        const std::vector<at::Tensor>& inputs) {
  return GraphEvaluator(graph).run(inputs);
}

}  // namespace torch_lazy::tests
