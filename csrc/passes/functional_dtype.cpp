#include "passes/functional_dtype.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <optional>

#include "ops/effects.h"
#include "passes/argument_stack.h"
#include "passes/graph_builder.h"

namespace torch_lazy {
namespace {

using torch::jit::Node;
using torch::jit::Value;

// What decides the dtypes of results: the operator, the dtypes of tensors and which of them have no
// dimensions, the types of numbers.
std::string key_of(const Node& node, const OperatorForm& form) {
  std::string key =
      form.functional->schema().name() + "." + form.functional->schema().overload_name();
  for (const std::optional<size_t> index : form.arguments) {
    const Value* argument = node.input(index.value());
    key += ',';
    if (const auto constant = constant_value(argument)) {
      key += constant->tagKind();
      if (!constant->isTensor()) {
        // A dtype, which is an integer, matters; the length of a list may.
        if (constant->isInt()) key += std::to_string(constant->toInt());
        continue;
      }
      const at::Tensor tensor = constant->toTensor();
      key += std::to_string(int(tensor.scalar_type()));
      key += tensor.unsafeGetTensorImpl()->is_wrapped_number() ? 'w' : 't';
      continue;
    }
    for_each_tensor(argument, [&](const Value* value) {
      const auto info = info_of(value);
      key += std::to_string(int(info.dtype)) + ":" + std::to_string(info.dims()) + ";";
    });
  }
  return key;
}

// What the functional operator returns for the written tensors when every tensor has one element
// for each dimension, of the given value; nothing where it raises.
std::optional<std::vector<c10::ScalarType>> computed_with(int64_t element, const Node& node,
                                                          const OperatorForm& form) {
  const auto tensor = [&](const Value* value) {
    const TensorInfo info = info_of(value);
    return at::full(std::vector<int64_t>(info.sizes.size(), 1), element, info.dtype);
  };
  const c10::FunctionSchema& schema = form.functional->schema();
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  torch::jit::Stack stack;
  try {
    for (size_t i = 0; i < form.arguments.size(); ++i)
      stack.push_back(argument_value(node.input(form.arguments[i].value()),
                                     schema.arguments()[i].type(), tensor));
    form.functional->callBoxed(&stack);
  } catch (const std::exception&) {
    return std::nullopt;
  }
  std::vector<c10::ScalarType> dtypes;
  for (size_t i = stack.size() - form.written.size(); i < stack.size(); ++i) {
    if (stack[i].isTensor()) dtypes.push_back(stack[i].toTensor().scalar_type());
    if (!stack[i].isTensorList()) continue;
    for (const at::Tensor& element : stack[i].toTensorVector())
      dtypes.push_back(element.scalar_type());
  }
  return dtypes;
}

// Whether every floating-point tensor that the node reads has the one dtype that it writes.
bool all_of_one_dtype(const Node& node, const std::vector<c10::ScalarType>& wanted) {
  bool one = std::all_of(wanted.begin(), wanted.end(),
                         [&](c10::ScalarType dtype) { return dtype == wanted[0]; });
  for (const Value* input : node.inputs())
    for_each_tensor(input, [&](const Value* value) {
      const c10::ScalarType dtype = info_of(value).dtype;
      one &= dtype == wanted[0] || !c10::isFloatingType(dtype);
    });
  return one && c10::isFloatingType(wanted[0]);
}

bool casts_its_result(const OperatorForm& form) {
  if (form.handle.hasTag(at::Tag::pointwise) || form.functional->hasTag(at::Tag::pointwise))
    return true;
  // Over lists, operators are pointwise, and are not marked so.
  return form.handle.schema().arguments()[form.written[0]].type()->kind() ==
         c10::TypeKind::ListType;
}

// Whether a factory makes a tensor of these sizes, which its out argument has: some take an out
// argument of any sizes with as many elements.
bool makes_sizes(const Node& node, const OperatorForm& form, c10::IntArrayRef sizes) {
  const c10::FunctionSchema& schema = form.functional->schema();
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  torch::jit::Stack stack;
  try {
    for (size_t i = 0; i < form.arguments.size(); ++i) {
      const c10::Argument& argument = schema.arguments()[i];
      const auto tensor = [](const Value* value) {
        return at::empty(info_of(value).sizes, at::device(at::kMeta).dtype(info_of(value).dtype));
      };
      if (const std::optional<size_t> from = form.arguments[i])
        stack.push_back(argument_value(node.input(*from), argument.type(), tensor));
      else
        stack.push_back(argument.name() == "device" ? c10::IValue(c10::Device(c10::kMeta))
                                                    : c10::IValue());
    }
    form.functional->callBoxed(&stack);
  } catch (const std::exception&) {
    return false;
  }
  return stack.size() == 1 && stack[0].isTensor() && stack[0].toTensor().sizes() == sizes;
}

bool dtype_is_none(const Node& node, const OperatorForm& form) {
  const auto index = form.handle.schema().argumentIndexWithName("dtype");
  return index && node.input(size_t(*index))->mustBeNone() &&
         form.functional->schema().argumentIndexWithName("dtype").has_value();
}

}  // namespace

FunctionalDtypes FunctionalDtypeFinder::of(const Node& node, const OperatorForm& form,
                                           const std::vector<c10::ScalarType>& wanted) {
  if (form.makes_like_written) {
    if (!makes_sizes(node, form, info_of(node.input(form.written[0])).sizes))
      unsupported(node, "what it makes has other sizes than what it writes");
    return {wanted, true};
  }
  std::string key = key_of(node, form);
  for (const c10::ScalarType dtype : wanted) key += "|" + std::to_string(int(dtype));
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  // One makes divisors and zero makes indices that are valid.
  auto computed = computed_with(1, node, form);
  if (!computed) computed = computed_with(0, node, form);
  if (!computed && all_of_one_dtype(node, wanted)) computed = wanted;
  if (!computed || computed->size() != wanted.size())
    unsupported(node, "the dtype of its result is not known");
  FunctionalDtypes dtypes{*std::move(computed)};
  if (dtypes.computed != wanted) {
    if (wanted.size() == 1 && dtype_is_none(node, form))
      dtypes = {wanted, true};
    else if (!casts_its_result(form))
      unsupported(node, "it writes another dtype than it computes");
  }
  return known_.emplace(std::move(key), std::move(dtypes)).first->second;
}

}  // namespace torch_lazy
