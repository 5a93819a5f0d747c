#include "codegen/loop_ir.h"

#include <array>
#include <iterator>

#include "codegen/loop_analysis.h"

namespace torch_lazy::codegen {
namespace {

struct OpInfo {
  const char* name;
  int arguments;
};

// In the order of Op.
constexpr OpInfo kOps[] = {
    {"load", 0},
    {"number", 0},
    {"integer", 0},
    {"index", 0},
    {"cast", 1},
    {"bitcast", 1},
    {"select", 3},
    {"equal", 2},
    {"not_equal", 2},
    {"less", 2},
    {"less_equal", 2},
    {"greater", 2},
    {"greater_equal", 2},
    {"add", 2},
    {"sub", 2},
    {"mul", 2},
    {"neg", 1},
    {"abs", 1},
    {"sign", 1},
    {"min", 2},
    {"max", 2},
    {"and", 2},
    {"or", 2},
    {"xor", 2},
    {"not", 1},
    {"shift_left", 2},
    {"shift_right", 2},
    {"div", 2},
    {"div_trunc", 2},
    {"div_floor", 2},
    {"remainder", 2},
    {"fmod", 2},
    {"pow", 2},
    {"fma", 3},
    {"sqrt", 1},
    {"rsqrt", 1},
    {"reciprocal", 1},
    {"exp", 1},
    {"exp2", 1},
    {"expm1", 1},
    {"log", 1},
    {"log2", 1},
    {"log10", 1},
    {"log1p", 1},
    {"sin", 1},
    {"cos", 1},
    {"tan", 1},
    {"asin", 1},
    {"acos", 1},
    {"atan", 1},
    {"atan2", 2},
    {"sinh", 1},
    {"cosh", 1},
    {"tanh", 1},
    {"asinh", 1},
    {"acosh", 1},
    {"atanh", 1},
    {"erf", 1},
    {"erfc", 1},
    {"erfinv", 1},
    {"lgamma", 1},
    {"digamma", 1},
    {"sigmoid", 1},
    {"hypot", 2},
    {"floor", 1},
    {"ceil", 1},
    {"round", 1},
    {"trunc", 1},
    {"is_nan", 1},
    {"is_inf", 1},
    {"copy_sign", 2},
    {"philox_uniform", 2},
    {"reduce_sum", 1},
    {"reduce_prod", 1},
    {"reduce_min", 1},
    {"reduce_max", 1},
    {"reduce_and", 1},
    {"reduce_or", 1},
    {"reduce_arg_max", 1},
    {"reduce_arg_min", 1},
};
static_assert(std::size(kOps) == static_cast<size_t>(Op::kReduceArgMin) + 1);

struct TypeInfo {
  const char* name;
  int64_t bytes;
};

// In the order of Type.
constexpr TypeInfo kTypes[] = {
    {"bool", 1},  {"uint8", 1},    {"int8", 1}, {"int16", 2}, {"int32", 4},
    {"int64", 8}, {"bfloat16", 2}, {"half", 2}, {"float", 4}, {"double", 8},
};
static_assert(std::size(kTypes) == static_cast<size_t>(Type::kDouble) + 1);

std::string text_of(Size size) {
  return size.slot ? "S" + std::to_string(size.value) : std::to_string(size.value);
}

std::string text_of(ExprId id) {
  std::string text = "%";
  return text += std::to_string(id);
}

std::string dimension_name(const Kernel& kernel, size_t dimension) {
  const size_t kept = kernel.kept.size();
  return dimension < kept ? "k" + std::to_string(dimension)
                          : "r" + std::to_string(dimension - kept);
}

std::string text_of(const Kernel& kernel, const Access& access) {
  std::string text;
  const auto add_term = [&](const std::string& index, Size stride) {
    if (stride.is(0)) return;
    if (!text.empty()) text += " + ";
    text += index;
    if (!stride.is(1)) text += " * " + text_of(stride);
  };
  if (!access.offset.is(0)) text = text_of(access.offset);
  for (size_t i = 0; i < access.strides.size(); ++i) {
    add_term(dimension_name(kernel, i), access.strides[i]);
  }
  for (const auto& indirect : access.indirect) add_term(text_of(indirect.index), indirect.stride);
  return "[" + (text.empty() ? "0" : text) + "]";
}

std::string text_of_value(const Kernel& kernel, const Expr& expr) {
  std::string text = name_of(expr.op);
  switch (expr.op) {
    case Op::kLoad:
      text += " " + kernel.buffers[expr.buffer].name + text_of(kernel, expr.access);
      break;
    case Op::kNumber:
      text += " D" + std::to_string(expr.value.value);
      break;
    case Op::kInteger:
      text += " " + text_of(expr.value);
      break;
    case Op::kIndex:
      text += " " + dimension_name(kernel, expr.dimension);
      break;
    default:
      break;
  }
  for (size_t i = 0; i < expr.arguments.size(); ++i) {
    text += (i == 0 ? " " : ", ") + text_of(expr.arguments[i]);
  }
  if (expr.predicate != kNoPredicate) text += " if " + text_of(expr.predicate);
  return text;
}

}  // namespace

const char* name_of(Op op) {
  return kOps[static_cast<size_t>(op)].name;
}
const char* name_of(Type type) {
  return kTypes[static_cast<size_t>(type)].name;
}
int64_t bytes_of(Type type) {
  return kTypes[static_cast<size_t>(type)].bytes;
}
int argument_count(Op op) {
  return kOps[static_cast<size_t>(op)].arguments;
}
bool is_reduction(Op op) {
  return op >= Op::kReduceSum;
}
bool is_low(Type type) {
  return type == Type::kBFloat16 || type == Type::kHalf;
}

bool is_floating(Type type) {
  return type >= Type::kBFloat16;
}

std::string to_string(const Kernel& kernel) {
  std::string text = "kernel " + kernel.name;
  if (kernel.axis == Axis::kReduced) {
    text += " lanes=reduced";
  } else {
    text += " lanes=kept block=" + text_of(kernel.block);
  }
  if (!kernel.reduced_total.is(0)) text += " reduced_total=" + text_of(kernel.reduced_total);
  if (kernel.fetches_ahead) text += " fetches_ahead";
  text += "\n";
  for (const std::string& comment : kernel.comments) text += "  # " + comment + "\n";
  for (const Buffer& buffer : kernel.buffers) {
    text += "  buffer " + buffer.name + ": " + name_of(buffer.type);
    if (buffer.written) text += " written";
    if (!buffer.exclusive) text += " shared";
    text += "\n";
  }
  for (size_t i = 0; i < kernel.kept.size(); ++i) {
    text += "  for " + dimension_name(kernel, i) + " < " + text_of(kernel.kept[i]) + "\n";
  }
  for (size_t i = 0; i < kernel.reduced.size(); ++i) {
    text += "  reduce " + dimension_name(kernel, kernel.kept.size() + i) + " < " +
            text_of(kernel.reduced[i]) + "\n";
  }
  for (size_t i = 0; i < kernel.exprs.size(); ++i) {
    const Expr& expr = kernel.exprs[i];
    text += "  " + text_of(static_cast<ExprId>(i)) + ": " + name_of(expr.type) + " = " +
            text_of_value(kernel, expr) + "\n";
  }
  for (const Store& store : kernel.stores) {
    text += "  store " + kernel.buffers[store.buffer].name + text_of(kernel, store.access) + " = " +
            text_of(store.expr);
    if (store.predicate != kNoPredicate) text += " if " + text_of(store.predicate);
    if (store.streamed) text += " streamed";
    text += "\n";
  }
  return text;
}

}  // namespace torch_lazy::codegen
