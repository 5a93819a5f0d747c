// Arguments as words on the tape. A boxed value leaves the words of an unboxed one.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/IListRef.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <c10/util/OptionalArrayRef.h>

#include <array>
#include <optional>
#include <string_view>

#include "trace/open_operation.h"

namespace torch_lazy {

void encode(OpenOperation& operation, const at::Tensor& tensor);
void encode(OpenOperation& operation, const std::optional<at::Tensor>& tensor);
void encode(OpenOperation& operation, at::ITensorListRef tensors);
void encode(OpenOperation& operation, at::TensorList tensors);
void encode(OpenOperation& operation, const c10::List<std::optional<at::Tensor>>& tensors);
void encode(OpenOperation& operation, const at::Scalar& scalar);
void encode(OpenOperation& operation, at::ArrayRef<at::Scalar> scalars);
void encode(OpenOperation& operation, int64_t value);
void encode(OpenOperation& operation, double value);
inline void encode(OpenOperation& operation, bool value) {
  operation.word(make_word(Tag::kBool, value));
}
inline void encode(OpenOperation& operation, const c10::SymInt& value) {
  encode(operation, value.guard_int(__FILE__, __LINE__));
}
inline void encode(OpenOperation& operation, c10::ScalarType dtype) {
  encode(operation, int64_t(dtype));
}
inline void encode(OpenOperation& operation, c10::Layout layout) {
  encode(operation, int64_t(layout));
}
inline void encode(OpenOperation& operation, c10::MemoryFormat format) {
  encode(operation, int64_t(format));
}
void encode(OpenOperation& operation, c10::Device device);
inline void encode(OpenOperation& operation, const at::Generator&) {
  operation.word(make_word(Tag::kGenerator));
}
inline void encode(OpenOperation& operation, std::string_view text) {
  operation.string(text);
}
void encode(OpenOperation& operation, c10::IntArrayRef list);
void encode(OpenOperation& operation, c10::SymIntArrayRef list);
void encode(OpenOperation& operation, c10::ArrayRef<double> list);
template <size_t N>
void encode(OpenOperation& operation, const std::array<bool, N>& list) {
  operation.word(make_word(Tag::kBoolList, N));
  for (const bool value : list) operation.word(value);
}
template <class Optional>
void encode_optional(OpenOperation& operation, const Optional& value) {
  if (value)
    encode(operation, *value);
  else
    operation.word(make_word(Tag::kNone));
}
template <class Value>
void encode(OpenOperation& operation, const std::optional<Value>& value) {
  encode_optional(operation, value);
}
template <class Value>
void encode(OpenOperation& operation, const c10::OptionalArrayRef<Value>& list) {
  encode_optional(operation, list);
}
// By the type that the schema gives the argument.
void encode(OpenOperation& operation, const c10::IValue& value, const c10::Type& type);

}  // namespace torch_lazy
