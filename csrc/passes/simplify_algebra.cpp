#include "passes/simplify_algebra.h"

#include <ATen/core/Tensor.h>

#include <cmath>
#include <unordered_map>

#include "ir/node_operator.h"
#include "passes/simplify_cats.h"
#include "passes/simplify_partial_writes.h"

namespace torch_lazy {
namespace {

using c10::ScalarType;
using torch::jit::Node;
using torch::jit::Value;

struct Arguments {
  size_t operands = 0;  // the first ones
  size_t all = 0;       // 0: any number of others
};

// Of the pointwise core operators, by TorchScript's kind.
const std::unordered_map<c10::Symbol, Arguments>& pointwise_operators() {
  static const std::unordered_map<c10::Symbol, Arguments> table = [] {
    std::unordered_map<c10::Symbol, Arguments> made;
    const auto add = [&](Arguments arguments, std::initializer_list<const char*> names) {
      for (const char* name : names)
        made[c10::Symbol::fromQualString(std::string("aten::") + name)] = arguments;
    };
    add({1, 1},
        {"neg",   "abs",   "sign",  "sqrt",   "rsqrt",  "reciprocal",  "exp",        "exp2",
         "expm1", "log",   "log2",  "log10",  "log1p",  "sin",         "cos",        "tan",
         "asin",  "acos",  "atan",  "sinh",   "cosh",   "tanh",        "asinh",      "acosh",
         "atanh", "erf",   "erfc",  "erfinv", "lgamma", "digamma",     "sigmoid",    "floor",
         "ceil",  "round", "trunc", "isnan",  "isinf",  "logical_not", "bitwise_not"});
    add({1}, {"_to_copy"});
    add({2}, {"add",
              "sub",
              "mul",
              "div",
              "remainder",
              "fmod",
              "pow",
              "maximum",
              "minimum",
              "atan2",
              "hypot",
              "copysign",
              "eq",
              "ne",
              "lt",
              "le",
              "gt",
              "ge",
              "logical_and",
              "logical_or",
              "logical_xor",
              "bitwise_and",
              "bitwise_or",
              "bitwise_xor",
              "bitwise_left_shift",
              "bitwise_right_shift"});
    add({3}, {"where", "addcmul"});
    return made;
  }();
  return table;
}

// As constant_number, but no complex ones.
std::optional<at::Scalar> real_number(const Value* value) {
  const auto number = constant_number(value);
  return number && !number->isComplex() ? number : std::nullopt;
}

bool is_zero(const at::Scalar& number, bool negative) {
  return number.toDouble() == 0 &&
         (!number.isFloatingPoint() || std::signbit(number.toDouble()) == negative);
}

bool is_one(const std::optional<at::Scalar>& number) {
  return number && number->toDouble() == 1;
}

bool has_sizes_of(const Value* value, const Value* output) {
  return info_of(value).sizes == info_of(output).sizes;
}

bool has_plain_alpha(const Node* node) {
  return is_one(real_number(node->input(2)));
}

bool is_cast(const Node* node) {
  static const c10::Symbol kCast = c10::Symbol::fromQualString("aten::_to_copy");
  return node->kind() == kCast;
}

// ---- Arithmetic with a neutral number ----

// The operand that the result equals, for the number beside it.
Value* neutral(const Node* node) {
  const auto right = real_number(node->input(1)), left = real_number(node->input(0));
  Value* const x = const_cast<Node*>(node)->input(0);
  Value* const y = const_cast<Node*>(node)->input(1);
  switch (node->kind()) {
    case c10::aten::mul:
      if (is_one(right)) return x;
      return is_one(left) ? y : nullptr;
    case c10::aten::div:
      // With a rounding mode there is a third argument.
      return node->inputs().size() == 2 && is_one(right) ? x : nullptr;
    case c10::aten::add:
      // x + 0 is not x where x is -0; x + -0 is.
      if (!has_plain_alpha(node)) return nullptr;
      if (right && is_zero(*right, true)) return x;
      return left && is_zero(*left, true) ? y : nullptr;
    case c10::aten::sub:
      return has_plain_alpha(node) && right && is_zero(*right, false) ? x : nullptr;
    case c10::aten::pow:
      return is_one(right) ? x : nullptr;
    default:
      return nullptr;
  }
}

// Division by a power of two is multiplication by its inverse, which is exact.
Value* product_for_quotient(GraphBuilder& builder, Node* node) {
  if (node->kind() != c10::aten::div || node->inputs().size() != 2) return nullptr;
  const auto divisor = real_number(node->input(1));
  const ScalarType dtype = info_of(node->output()).dtype;
  if (!divisor || (dtype != c10::kFloat && dtype != c10::kDouble)) return nullptr;
  int exponent = 0;
  // Far from where the inverse would be subnormal.
  constexpr int kLargest = 100;
  if (std::abs(std::frexp(divisor->toDouble(), &exponent)) != 0.5 || std::abs(exponent) > kLargest)
    return nullptr;
  return builder.pointwise("aten::mul", "Tensor",
                           {node->input(0), builder.number(1 / divisor->toDouble(), dtype)}, dtype);
}

// ---- Repeated operators ----

Value* repeated(Node* node) {
  Value* const x = node->input(0);
  const Node* inner = x->node();
  switch (node->kind()) {
    case c10::aten::neg:
      return inner->kind() == c10::aten::neg ? const_cast<Node*>(inner)->input(0) : nullptr;
    case c10::aten::abs:
      return inner->kind() == c10::aten::abs ? x : nullptr;
    case c10::aten::logical_not:
      // Of a bool; operands of another dtype become one.
      if (inner->kind() != c10::aten::logical_not || info_of(inner->input(0)).dtype != c10::kBool)
        return nullptr;
      return const_cast<Node*>(inner)->input(0);
    case c10::aten::maximum:
    case c10::aten::minimum:
    case c10::aten::logical_and:
    case c10::aten::logical_or:
      return x == node->input(1) ? x : nullptr;
    case c10::aten::where:
      return node->input(1) == node->input(2) ? node->input(1) : nullptr;
    default:
      return nullptr;
  }
}

// ---- Casts, copies, views ----

// A cast of an exact cast casts what that was made from.
Value* shorter_cast(GraphBuilder& builder, Node* node) {
  Node* const inner = node->input(0)->node();
  const ScalarType to = info_of(node->output()).dtype;
  const ScalarType between = info_of(node->input(0)).dtype;
  if (to == between) return node->input(0);
  if (!is_cast(inner)) return nullptr;
  Value* const x = inner->input(0);
  return is_exact_cast(info_of(x).dtype, between) ? builder.to(x, to) : nullptr;
}

bool same_strides(const TensorInfo& a, const TensorInfo& b) {
  for (size_t i = 0; i < a.sizes.size(); ++i)
    if (a.sizes[i] > 1 && a.strides[i] != b.strides[i]) return false;
  return true;
}

Value* base_of_whole_view(Node* node, c10::IntArrayRef input_offsets) {
  Value* const base = node->input(0);
  const TensorInfo view = info_of(node->output()), info = info_of(base);
  if (view.sizes != info.sizes || !same_strides(view, info)) return nullptr;
  const auto layout = layout_of_view(node, input_offsets);
  return layout && layout->offset == 0 ? base : nullptr;
}

// ---- Constant tensors ----

// The number that all elements of the value are: of a constant or of aten::full.
std::optional<at::Scalar> uniform_number(const Value* value) {
  if (value->node()->kind() == c10::aten::full) return real_number(value->node()->input(1));
  return value->type()->kind() == c10::TypeKind::TensorType ? real_number(value) : std::nullopt;
}

// Of pointwise operators on such values: their number, computed by ATen.
Value* folded(GraphBuilder& builder, Node* node) {
  const size_t operands = operand_count(*node);
  torch::jit::Stack stack;
  for (size_t i = 0; i < operands; ++i) {
    const auto number = uniform_number(node->input(i));
    if (!number) return nullptr;
    const Value* exact = builder.number(*number, info_of(node->input(i)).dtype);
    stack.emplace_back(*constant_value(exact));
  }
  for (size_t i = operands; i < node->inputs().size(); ++i) {
    auto constant = constant_value(node->input(i));
    if (!constant) return nullptr;
    stack.push_back(*std::move(constant));
  }
  operator_of(node).callBoxed(stack);
  return builder.full(stack.at(0).toTensor().item(), info_of(node->output()));
}

Value* view_of_uniform(GraphBuilder& builder, Node* node) {
  const auto number = uniform_number(node->input(0));
  if (!number) return nullptr;
  TensorInfo type = info_of(node->output());
  if (node->kind() == c10::aten::as_strided) type.strides = contiguous_strides(type.sizes);
  return builder.full(*number, type);
}

}  // namespace

bool is_plain_addmm(const Node& node) {
  return node.kind() == c10::aten::addmm && is_one(real_number(node.input(3))) &&
         is_one(real_number(node.input(4)));
}

size_t operand_count(const Node& node) {
  const auto found = pointwise_operators().find(node.kind());
  if (found == pointwise_operators().end() || node.outputs().size() != 1) return 0;
  const auto [operands, all] = found->second;
  // Overloads that take numbers, or more arguments, are other operators.
  if (all != 0 && node.inputs().size() != all) return 0;
  for (size_t i = 0; i < operands; ++i) {
    const Value* const operand = node.input(i);
    if (!has_complete_type(operand) && (operand->node()->kind() != c10::prim::Constant ||
                                        operand->type()->kind() != c10::TypeKind::TensorType))
      return 0;
  }
  return operands;
}

bool is_pointwise(const Node& node) {
  return operand_count(node) > 0;
}

bool is_exact_cast(ScalarType from, ScalarType to) {
  if (from == to) return true;
  if (from == c10::kBool) return to != ScalarType::Float8_e8m0fnu;  // which has no zero
  if (c10::isFloat8Type(to)) return false;
  switch (from) {
    case c10::kByte:
      return to != c10::kBool && to != c10::kChar;
    case c10::kChar:
      return to != c10::kBool && to != c10::kByte && !c10::isBarebonesUnsignedType(to);
    case c10::kShort:
      return to == c10::kInt || to == c10::kLong || to == c10::kFloat || to == c10::kDouble;
    case c10::kInt:
      return to == c10::kLong || to == c10::kDouble;
    case ScalarType::Float8_e4m3fn:
    case ScalarType::Float8_e5m2:
      return c10::isFloatingType(to);
    case c10::kBFloat16:
    case c10::kHalf:
      return to == c10::kFloat || to == c10::kDouble;
    case c10::kFloat:
      return to == c10::kDouble;
    default:
      return false;
  }
}

Value* simpler_value(GraphBuilder& builder, Node* node, c10::IntArrayRef input_offsets) {
  if (node->outputs().size() != 1 || !has_complete_type(node->output())) return nullptr;
  if (node->kind() == c10::aten::as_strided) {
    if (Value* whole = view_of_uniform(builder, node)) return whole;
    if (Value* past = read_past_writes(builder, node, input_offsets)) return past;
    return base_of_whole_view(node, input_offsets);
  }
  if (node->kind() == c10::aten::as_strided_scatter) {
    if (Value* cat = cat_of_writes(builder, node)) return cat;
    return without_covered_write(builder, node, input_offsets);
  }
  if (node->kind() == c10::aten::clone) {
    if (Value* uniform = view_of_uniform(builder, node)) return uniform;
    return node->input(0);
  }
  const size_t operands = operand_count(*node);
  if (operands == 0) return nullptr;
  // A product of complex numbers multiplies parts by 0, which is no 0 beside infinities, and adds
  // zeros: no number is neutral.
  if (c10::isComplexType(info_of(node->output()).dtype)) return nullptr;
  if (Value* number = folded(builder, node)) return number;
  // A tensor full of one number is that number, where the others have the result's sizes.
  for (size_t i = 0; i < operands; ++i) {
    Value* const operand = node->input(i);
    if (operand->node()->kind() != c10::aten::full) continue;
    const auto number = uniform_number(operand);
    if (!number) continue;  // it is an input of the window
    std::vector<int64_t> sizes;
    for (size_t j = 0; j < operands; ++j)
      if (j != i) sizes = broadcast_sizes(sizes, info_of(node->input(j)).sizes);
    const TensorInfo info = info_of(operand);
    if (sizes == info_of(node->output()).sizes)
      node->replaceInput(i, builder.number(*number, info.dtype));
  }
  if (is_cast(node))
    if (Value* shorter = shorter_cast(builder, node)) return shorter;
  if (operands == 2)
    if (Value* same = neutral(node); same && has_sizes_of(same, node->output())) return same;
  if (Value* same = repeated(node); same && has_sizes_of(same, node->output())) return same;
  if (Value* product = product_for_quotient(builder, node)) return product;
  return cat_of_results(builder, node, operands);
}

}  // namespace torch_lazy
