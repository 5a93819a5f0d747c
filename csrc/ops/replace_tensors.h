// The walks through a boxed value that holds tensors: one that replaces them, two that look.
#pragma once

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <optional>
#include <utility>

namespace torch_lazy {

// `value` with what replace(tensor) returns in the place of each tensor, at any depth of lists; any
// other value as it is. `replace` also gets undefined tensors, where a list holds some.
template <class Replace>
c10::IValue replace_tensors(const c10::IValue& value, const Replace& replace) {
  if (value.isTensor()) return replace(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorList()) list.push_back(replace(tensor));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor> tensor : value.toOptionalTensorList())
      list.push_back(tensor ? std::optional<at::Tensor>(replace(*tensor)) : std::nullopt);
    return list;
  }
  if (!value.isList()) return value;
  const c10::List<c10::IValue> given = value.toList();
  if (given.elementType()->kind() != c10::TypeKind::ListType) return value;
  c10::impl::GenericList list(given.elementType());
  for (const c10::IValue& element : given) list.push_back(replace_tensors(element, replace));
  return list;
}

// Whether a tensor in `value`, at any depth of lists, satisfies `condition`; asks no further then.
// `condition` also gets undefined tensors.
template <class Condition>
bool any_tensor(const c10::IValue& value, const Condition& condition) {
  if (value.isTensor()) return condition(value.toTensor());
  if (!value.isList()) return false;
  for (const c10::IValue& element : value.toListRef())
    if (any_tensor(element, condition)) return true;
  return false;
}

// Calls visit(tensor) for each tensor in `value`, at any depth of lists, undefined ones too.
template <class Visit>
void for_each_tensor(const c10::IValue& value, const Visit& visit) {
  any_tensor(value, [&](const at::Tensor& tensor) {
    visit(tensor);
    return false;
  });
}

}  // namespace torch_lazy
