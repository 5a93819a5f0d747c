#include "codegen/print_scan.h"

#include <string>

#include "codegen/print_expr.h"

namespace torch_lazy::codegen {
namespace {

bool is_along_lanes(const PrintContext& context) {
  return context.kernel.axis == Axis::kReduction;
}

std::string accumulator(const PrintContext& context, ExprId id, int copy) {
  const std::string name = "u" + std::to_string(id);
  const bool is_one = is_along_lanes(context) || !context.is_vector(id);
  return is_one ? name : name + "_" + std::to_string(copy);
}

}  // namespace

void declare_scans(const PrintContext& context, const Sweep& sweep, int copies, SourceWriter& out) {
  for (const ExprId id : sweep.exprs) {
    const Expr& scan = context.kernel.exprs[id];
    if (!is_scan(scan.op)) continue;
    const bool vector = context.is_vector(id);
    std::string first = integer_literal(scan.op == Op::kScanSum ? 0 : 1, scan.type);
    if (vector) first = context.call(std::string("lazy_splat_") + scalar_type(scan.type), {first});
    const bool is_one = is_along_lanes(context) || !vector;
    for (int copy = 0; copy < (is_one ? 1 : copies); ++copy)
      out.line(std::string(value_type(scan.type, vector)) + " " + accumulator(context, id, copy) +
               " = " + first + ";");
  }
}

void print_scan(const PrintContext& context, ExprId id, const Body& body, SourceWriter& out) {
  const Expr& scan = context.kernel.exprs[id];
  const bool vector = context.is_vector(id), sums = scan.op == Op::kScanSum;
  const std::string type = value_type(scan.type, vector);
  const auto call = [&](const char* function, const std::vector<std::string>& arguments) {
    return context.call(function, type, arguments);
  };
  for (int copy = 0; copy < (vector ? body.copies : 1); ++copy) {
    const Body own{copy, body.copies, body.last_masked};
    const std::string before = accumulator(context, id, copy);
    std::string value = read(context, scan.arguments[0], own, vector);
    if (is_along_lanes(context))
      value = call(sums ? "lazy_prefix_sum" : "lazy_prefix_prod", {value});
    const std::string next = call(sums ? "lazy_add" : "lazy_mul", {before, value});
    if (!vector) {
      out.line(before + " = " + next + ";");
      print_scalar(context, id, before, out);
      continue;
    }
    const std::string name = read_vector(context, id, own);
    out.line("const " + type + " " + name + " = " + next + ";");
    out.line(before + " = " + (is_along_lanes(context) ? call("lazy_last_lane", {name}) : name) +
             ";");
  }
}

}  // namespace torch_lazy::codegen
