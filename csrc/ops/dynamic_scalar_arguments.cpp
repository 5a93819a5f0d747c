#include "ops/dynamic_scalar_arguments.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace torch_lazy {
namespace {

// Numbers that an operator only computes with: no kernel branches on them, and they decide nothing
// of the output's metadata. In-place variants are meant too.
//
// (ATen fills with ones where pow's base is 1, which is what its kernels give, too.)
//
// Left out on purpose: dims, dtypes, bools, sizes. pow's exponent (0.5, 2 and others have kernels
// of their own), alpha and beta of matrix products (0 means that an operand is not read),
// probabilities (0 and 1 branch), eps and slopes (they do not change), quotients that are rounded.
const std::unordered_map<std::string, std::vector<std::string>>& table() {
  static const auto* const arguments =
      new std::unordered_map<std::string, std::vector<std::string>>{
          {"aten::add", {"other", "alpha"}},
          {"aten::sub", {"other", "alpha"}},
          {"aten::rsub", {"other", "alpha"}},
          {"aten::mul", {"other"}},
          {"aten::div", {"other"}},
          {"aten::addcmul", {"value"}},
          {"aten::addcdiv", {"value"}},
          {"aten::lerp", {"weight"}},
          {"aten::pow", {"self"}},
          {"aten::eq", {"other"}},
          {"aten::ne", {"other"}},
          {"aten::lt", {"other"}},
          {"aten::le", {"other"}},
          {"aten::gt", {"other"}},
          {"aten::ge", {"other"}},
          {"aten::clamp", {"min", "max"}},
          {"aten::clamp_min", {"min"}},
          {"aten::clamp_max", {"max"}},
          {"aten::fill", {"value"}},
          {"aten::full", {"fill_value"}},
          {"aten::full_like", {"fill_value"}},
          {"aten::new_full", {"fill_value"}},
          {"aten::masked_fill", {"value"}},
          {"aten::scalar_tensor", {"s"}},
          {"aten::_foreach_add", {"scalar", "scalars", "alpha"}},
          {"aten::_foreach_sub", {"scalar", "scalars", "alpha"}},
          {"aten::_foreach_mul", {"scalar", "scalars"}},
          {"aten::_foreach_div", {"scalar", "scalars"}},
          {"aten::_foreach_addcmul", {"value", "scalars"}},
          {"aten::_foreach_addcdiv", {"value", "scalars"}},
          {"aten::_foreach_lerp", {"weight"}},
          {"aten::_foreach_clamp_min", {"scalar", "scalars"}},
          {"aten::_foreach_clamp_max", {"scalar", "scalars"}},
          {"aten::_foreach_maximum", {"scalar", "scalars"}},
          {"aten::_foreach_minimum", {"scalar", "scalars"}},
      };
  return *arguments;
}

// That of the in-place variant is the same.
std::string name_of(const c10::FunctionSchema& schema) {
  std::string name = schema.name();
  if (name.back() == '_') name.pop_back();
  return name;
}

bool is_scalar(const c10::Type& type) {
  return type.kind() == c10::TypeKind::NumberType;
}

// A Scalar, a list of them, or a tensor in whose place a Python number stands: it is computed with
// in the output's dtype, so there must be one.
bool takes_number(const c10::Argument& argument, const c10::FunctionSchema& schema) {
  c10::TypePtr type = argument.type();
  if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  if (const auto list = type->cast<c10::ListType>()) return is_scalar(*list->getElementType());
  const auto& returns = schema.returns();
  const bool one_tensor = !is_comparison(schema) && returns.size() == 1 &&
                          returns[0].type()->kind() == c10::TypeKind::TensorType;
  return is_scalar(*type) || (one_tensor && type->kind() == c10::TypeKind::TensorType);
}

}  // namespace

bool is_comparison(const c10::FunctionSchema& schema) {
  static const auto* const names = new std::unordered_set<std::string>{
      "aten::eq", "aten::ne", "aten::lt", "aten::le", "aten::gt", "aten::ge"};
  return names->contains(name_of(schema));
}

uint32_t dynamic_scalar_arguments(const c10::FunctionSchema& schema) {
  const auto found = table().find(name_of(schema));
  if (found == table().end()) return 0;
  uint32_t dynamic = 0;
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    // The dtype that an out= variant computes in is not its output's.
    if (argument.is_out() || argument.name() == "rounding_mode" || i >= 32) return 0;
    const bool named = std::find(found->second.begin(), found->second.end(), argument.name()) !=
                       found->second.end();
    if (named && takes_number(argument, schema)) dynamic |= uint32_t(1) << i;
  }
  return dynamic;
}

}  // namespace torch_lazy
