#include "ir/argument_constant.h"

#include <ATen/core/List.h>

namespace torch_lazy {

c10::TypePtr strip_optional(const c10::TypePtr& type) {
  if (const auto optional = type->cast<c10::OptionalType>()) return optional->getElementType();
  return type;
}

c10::IValue argument_constant(const c10::IValue& constant, const c10::TypePtr& formal,
                              c10::Device device) {
  const c10::TypePtr type = strip_optional(formal);
  if (constant.isDevice() && constant.toDevice().type() == c10::DeviceType::Lazy) return device;
  if (constant.isInt() && type->kind() == c10::TypeKind::FloatType) return double(constant.toInt());
  if (!constant.isList()) return constant;

  const auto list_type = type->cast<c10::ListType>();
  if (!list_type) return constant;
  const c10::TypePtr& element = list_type->getElementType();
  if (*constant.type()->expectRef<c10::ListType>().getElementType() == *element) return constant;
  c10::impl::GenericList typed(element);
  for (const c10::IValue& item : constant.toListRef())
    typed.push_back(argument_constant(item, element, device));
  return typed;
}

}  // namespace torch_lazy
