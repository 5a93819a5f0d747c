#include "device/encode_argument.h"

#include <bit>
#include <cstring>

#include "device/lazy_tensor.h"

namespace torch_lazy {
namespace {

// Of a type whose value is None.
bool may_be_tensor(const c10::Type& type) {
  if (type.kind() == c10::TypeKind::OptionalType)
    return type.containedType(0)->kind() == c10::TypeKind::TensorType;
  return type.kind() == c10::TypeKind::TensorType || type.kind() == c10::TypeKind::NoneType;
}

}  // namespace

void encode(OpenOperation& operation, const at::Tensor& tensor) {
  if (!tensor.defined()) return operation.word(make_word(Tag::kUndefined));
  if (LazyTensorImpl* impl = lazy_impl(tensor)) {
    LazyStorage& storage = impl->lazy_storage();
    if (operation.tensor(impl->binding, storage.state, *impl, int64_t(storage.nbytes()),
                         tensor_flags(*impl)))
      operation.bind_input(impl->resident_inner());
    return;
  }
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
    uint64_t bits[2] = {0, 0};
    std::memcpy(bits, tensor.const_data_ptr(), tensor.itemsize());
    operation.word(make_word(Tag::kNumber, 0, uint16_t(tensor.scalar_type())));
    operation.word(bits[0]);
    return operation.word(bits[1]);
  }
  operation.cpu_tensor(tensor);
}

void encode(OpenOperation& operation, const std::optional<at::Tensor>& tensor) {
  if (tensor)
    encode(operation, *tensor);
  else
    operation.word(make_word(Tag::kUndefined));
}

void encode(OpenOperation& operation, at::ITensorListRef tensors) {
  operation.word(make_word(Tag::kTensorList, uint32_t(tensors.size())));
  for (const at::Tensor& tensor : tensors) encode(operation, tensor);
}

void encode(OpenOperation& operation, at::TensorList tensors) {
  encode(operation, at::ITensorListRef(tensors));
}

void encode(OpenOperation& operation, const c10::List<std::optional<at::Tensor>>& tensors) {
  operation.word(make_word(Tag::kOptionalTensorList, uint32_t(tensors.size())));
  for (const std::optional<at::Tensor> tensor : tensors) encode(operation, tensor);
}

void encode(OpenOperation& operation, const at::Scalar& scalar) {
  if (scalar.isFloatingPoint()) return encode(operation, scalar.toDouble());
  if (scalar.isBoolean()) return encode(operation, scalar.toBool());
  if (scalar.isComplex()) {
    const auto value = scalar.toComplexDouble();
    operation.word(make_word(Tag::kComplex));
    operation.word(std::bit_cast<uint64_t>(value.real()));
    return operation.word(std::bit_cast<uint64_t>(value.imag()));
  }
  encode(operation, scalar.toLong());
}

void encode(OpenOperation& operation, at::ArrayRef<at::Scalar> scalars) {
  operation.word(make_word(Tag::kList, uint32_t(scalars.size())));
  for (const at::Scalar& scalar : scalars) encode(operation, scalar);
}

void encode(OpenOperation& operation, int64_t value) {
  operation.word(make_word(Tag::kInt));
  operation.word(uint64_t(value));
}

void encode(OpenOperation& operation, double value) {
  operation.word(make_word(Tag::kDouble));
  operation.word(std::bit_cast<uint64_t>(value));
}

void encode(OpenOperation& operation, c10::Device device) {
  operation.word(
      make_word(Tag::kDevice, uint32_t(device.type()) << 8 | uint8_t(device.index() + 1)));
}

void encode(OpenOperation& operation, c10::IntArrayRef list) {
  operation.word(make_word(Tag::kIntList, uint32_t(list.size())));
  for (const int64_t value : list) operation.word(uint64_t(value));
}

void encode(OpenOperation& operation, c10::SymIntArrayRef list) {
  operation.word(make_word(Tag::kIntList, uint32_t(list.size())));
  for (const c10::SymInt& value : list)
    operation.word(uint64_t(value.guard_int(__FILE__, __LINE__)));
}

void encode(OpenOperation& operation, c10::ArrayRef<double> list) {
  operation.word(make_word(Tag::kDoubleList, uint32_t(list.size())));
  for (const double value : list) operation.word(std::bit_cast<uint64_t>(value));
}

void encode(OpenOperation& operation, const c10::IValue& value, const c10::Type& type) {
  if (value.isNone()) {
    // An undefined tensor reaches a boxed kernel as None.
    const bool tensor = may_be_tensor(type);
    return operation.word(make_word(tensor ? Tag::kUndefined : Tag::kNone));
  }
  if (value.isTensor()) return encode(operation, value.toTensor());
  if (value.isInt()) return encode(operation, value.toInt());
  if (value.isDouble()) return encode(operation, value.toDouble());
  if (value.isBool()) return encode(operation, value.toBool());
  if (value.isComplexDouble()) return encode(operation, at::Scalar(value.toComplexDouble()));
  if (value.isSymInt()) return encode(operation, value.toSymInt());
  if (value.isString()) return encode(operation, std::string_view(value.toStringRef()));
  if (value.isDevice()) return encode(operation, value.toDevice());
  if (value.isGenerator()) return operation.word(make_word(Tag::kGenerator));
  if (value.isIntList()) return encode(operation, c10::IntArrayRef(value.toIntVector()));
  if (value.isSymIntList()) {
    const auto list = value.toSymIntVector();
    return encode(operation, c10::SymIntArrayRef(list));
  }
  if (value.isDoubleList()) return encode(operation, c10::ArrayRef<double>(value.toDoubleVector()));
  if (value.isBoolList()) {
    const c10::List<bool> list = value.toBoolList();
    operation.word(make_word(Tag::kBoolList, uint32_t(list.size())));
    for (const bool element : list) operation.word(element);
    return;
  }
  if (value.isTensorList()) {
    const auto list = value.toTensorVector();
    return encode(operation, at::TensorList(list));
  }
  if (value.isOptionalTensorList()) return encode(operation, value.toOptionalTensorList());
  if (value.isList()) {
    operation.word(make_word(Tag::kList, uint32_t(value.toListRef().size())));
    for (const c10::IValue& element : value.toListRef())
      encode(operation, element, *element.type());
    return;
  }
  TORCH_CHECK_NOT_IMPLEMENTED(false, operation.op().name, " has an argument of type ",
                              value.tagKind(),
                              ", which device lazy cannot record: run it on the cpu");
}

}  // namespace torch_lazy
