#include "codegen/print_expr.h"

#include <limits>

namespace torch_lazy::codegen {
namespace {

std::string cast_scalar(const std::string& text, Type type) {
  if (type == Type::kBool) return text + " != 0";
  return "(" + std::string(scalar_type(type)) + ")" + text;
}

// "lazy_cast_float", "lazy_mul".
std::string function_name(const PrintContext& context, const Expr& expr) {
  std::string name = std::string("lazy_") + name_of(expr.op);
  if (expr.op == Op::kCast || expr.op == Op::kBitcast)
    name += std::string("_") + name_of(expr.type);
  if (expr.op == Op::kBitcast) {
    // Both live as float: only the name says which bits are meant.
    const Type from = context.kernel.exprs[expr.arguments[0]].type;
    if (from == Type::kBFloat16 || from == Type::kHalf) name += std::string("_of_") + name_of(from);
  }
  return name;
}

std::string value_text(const PrintContext& context, const AccessPrinter& accesses, ExprId id,
                       const Body& body) {
  const Expr& expr = context.kernel.exprs[id];
  const bool vector = context.is_vector(id);
  switch (expr.op) {
    case Op::kLoad:
      return accesses.load(id, body);
    case Op::kNumber:
      return cast_scalar("d" + std::to_string(expr.value.value), expr.type);
    case Op::kInteger:
      if (!expr.value.slot) return integer_literal(expr.value.value, expr.type);
      return cast_scalar(name_of_size(expr.value), expr.type);
    case Op::kIndex: {
      const std::string index = name_of_index(context, expr.dimension);
      if (!vector) return index;
      return lane_indices(context, lane_index(context, body));
    }
    default:
      break;
  }
  if (compares_lane_index(context, id)) {
    const std::string limit = name_of_scalar(context, expr.arguments[1]);
    const std::string before =
        context.call("lazy_lanes_before", {lane_index(context, body), limit});
    return expr.op == Op::kLess ? before : context.call("lazy_not", "v_bool", {before});
  }
  std::vector<std::string> arguments;
  for (ExprId argument : expr.arguments) {
    arguments.push_back(read(context, argument, body, vector));
  }
  if (context.is_rounded_by_stores(id)) return arguments[0];
  // A lane outside of the range has no index, and must not report one.
  if (expr.op == Op::kWithin && vector && body.is_masked())
    arguments[0] = "(n > 0 ? " + arguments[0] + " : 0)";
  // Overloads go by the type of the values: select's first argument is a mask.
  const ExprId value = expr.arguments[expr.op == Op::kSelect ? 1 : 0];
  return context.call(function_name(context, expr),
                      value_type(context.kernel.exprs[value].type, vector), arguments);
}

}  // namespace

std::string lane_indices(const PrintContext& context, const std::string& first) {
  return context.call("lazy_add", "v_int64",
                      {context.call("lazy_splat_int64", {first}), context.call("lazy_iota", {})});
}

std::string integer_literal(int64_t value, Type type) {
  if (type == Type::kBool) return value != 0 ? "true" : "false";
  std::string text;
  if (value == std::numeric_limits<int64_t>::min()) {
    text = "(-9223372036854775807LL - 1)";
  } else {
    text = std::to_string(value) + (value > INT32_MAX || value <= INT32_MIN ? "LL" : "");
  }
  return "(" + std::string(scalar_type(type)) + ")" + text;
}

void print_vector_expr(const PrintContext& context, const AccessPrinter& accesses, ExprId id,
                       const Body& body, SourceWriter& out) {
  out.line(std::string("const ") + vector_type(context.kernel.exprs[id].type) + " " +
           read_vector(context, id, body) + " = " + value_text(context, accesses, id, body) + ";");
}

void print_scalar_expr(const PrintContext& context, const AccessPrinter& accesses, ExprId id,
                       SourceWriter& out) {
  print_scalar(context, id, value_text(context, accesses, id, Body{}), out);
}

void print_scalar(const PrintContext& context, ExprId id, const std::string& text,
                  SourceWriter& out) {
  const std::string type = scalar_type(context.kernel.exprs[id].type);
  std::string value = text;
  if (context.as_scalars[id]) {
    value = name_of_scalar(context, id);
    out.line((context.by_steps[id] ? "" : "const " + type + " ") + value + " = " + text + ";");
  }
  if (!context.as_vectors[id]) return;
  const std::string vector = vector_type(context.kernel.exprs[id].type);
  out.line((context.by_steps[id] ? "" : "const " + vector + " ") + name_of_splat(context, id) +
           " = " + context.call("lazy_splat_" + type, {value}) + ";");
}

}  // namespace torch_lazy::codegen
