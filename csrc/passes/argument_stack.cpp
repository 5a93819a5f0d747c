#include "passes/argument_stack.h"

#include <torch/csrc/jit/ir/constants.h>

#include "ir/argument_constant.h"

namespace torch_lazy {

c10::IValue argument_value(const torch::jit::Value* value, const c10::TypePtr& formal,
                           const std::function<at::Tensor(const torch::jit::Value*)>& tensor) {
  const torch::jit::Node& node = *value->node();
  if (node.kind() == c10::prim::ListConstruct) {
    const c10::TypePtr element =
        strip_optional(formal)->expectRef<c10::ListType>().getElementType();
    c10::impl::GenericList list(element);
    for (const torch::jit::Value* item : node.inputs())
      list.push_back(argument_value(item, element, tensor));
    return list;
  }
  if (node.kind() == c10::prim::AutogradZero) {
    if (formal->kind() == c10::TypeKind::TensorType) return at::Tensor();
    return {};
  }
  // A number that is an argument of the window: no result's metadata depends on it.
  if (node.kind() == c10::aten::ScalarImplicit &&
      node.input()->node()->kind() != c10::prim::Constant)
    return c10::Scalar(1.0);
  if (node.kind() == c10::aten::ScalarImplicit)
    return argument_value(node.input(), c10::TensorType::get(), tensor).toTensor().item();
  if (const auto constant = torch::jit::toIValue(value))
    return argument_constant(*constant, formal, c10::kCPU);
  if (value->type()->kind() == c10::TypeKind::TensorType) return tensor(value);
  TORCH_CHECK(false, "%", value->debugName(), " is neither a tensor nor a constant");
}

}  // namespace torch_lazy
