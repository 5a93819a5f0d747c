// Calls an operator as a node does, on other tensors than the window's: to see what it makes.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <torch/csrc/jit/ir/ir.h>

#include <functional>

namespace torch_lazy {

// What `value`, an argument of a node that is declared as `formal`, is when called: constants as
// they stand on the graph, tensors as `tensor` gives them.
c10::IValue argument_value(const torch::jit::Value* value, const c10::TypePtr& formal,
                           const std::function<at::Tensor(const torch::jit::Value*)>& tensor);

// Calls visit(value) for the tensor values among the elements of an argument.
template <typename Visit>
void for_each_tensor(const torch::jit::Value* argument, const Visit& visit) {
  if (argument->node()->kind() == c10::prim::ListConstruct) {
    for (const torch::jit::Value* element : argument->node()->inputs())
      for_each_tensor(element, visit);
  } else if (argument->type()->kind() == c10::TypeKind::TensorType &&
             argument->node()->kind() != c10::prim::AutogradZero) {
    visit(argument);
  }
}

// The tensors that a node returns, those in lists where ListUnpack puts them. Calls visit(index of
// the return, value) in order.
template <typename Visit>
void for_each_returned_tensor(const torch::jit::Node& node, const Visit& visit) {
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    const torch::jit::Value* output = node.output(i);
    if (output->type()->kind() == c10::TypeKind::TensorType) visit(i, output);
    if (output->type()->kind() != c10::TypeKind::ListType) continue;
    for (const torch::jit::Use& use : output->uses())
      for (const torch::jit::Value* element : use.user->outputs()) visit(i, element);
  }
}

}  // namespace torch_lazy
