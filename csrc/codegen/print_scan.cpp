#include "codegen/print_scan.h"

#include <string>

#include "codegen/print_expr.h"

namespace torch_lazy::codegen {
namespace {

// A scan in a sweep.
struct Scan {
  Scan(const PrintContext& context, size_t sweep, ExprId id)
      : expr(context.kernel.exprs[id]),
        vector(context.is_vector(id)),
        along_lanes(context.kernel.axis == Axis::kReduction),
        type(value_type(expr.type, vector)),
        name("scan" + std::to_string(id) + "_of_" + std::to_string(sweep)) {}

  // Of the copies, which columns have one for each of.
  int accumulators(int copies) const { return along_lanes || !vector ? 1 : copies; }
  std::string accumulator(int copy) const {
    return along_lanes || !vector ? name : name + "_" + std::to_string(copy);
  }

  const Expr& expr;
  const bool vector, along_lanes;
  const std::string type, name;
};

// What adds up a vector's lanes. Floats add up in double to nothing that is too large.
const char* sum_of_lanes(const PrintContext& context, const Expr& scan) {
  const Expr& argument = context.kernel.exprs[scan.arguments[0]];
  const bool widened = argument.op == Op::kCast && scan.type == Type::kDouble &&
                       context.kernel.exprs[argument.arguments[0]].type != Type::kDouble;
  return is_floating(scan.type) && !widened ? "lazy_scan_sum_in_range" : "lazy_scan_sum";
}

}  // namespace

void declare_scans(const PrintContext& context, size_t sweep, int copies, SourceWriter& out) {
  for (const ExprId id : context.schedule.sweeps[sweep].exprs) {
    if (!is_scan(context.kernel.exprs[id].op)) continue;
    const Scan scan(context, sweep, id);
    std::string first = integer_literal(scan.expr.op == Op::kScanSum ? 0 : 1, scan.expr.type);
    if (scan.vector)
      first = context.call(std::string("lazy_splat_") + scalar_type(scan.expr.type), {first});
    for (int copy = 0; copy < scan.accumulators(copies); ++copy)
      out.line(scan.type + " " + scan.accumulator(copy) + " = " + first + ";");
  }
}

void print_scan(const PrintContext& context, size_t sweep, ExprId id, const Body& body,
                SourceWriter& out) {
  const Scan scan(context, sweep, id);
  const bool sums = scan.expr.op == Op::kScanSum;
  const char* const of_lanes = sums ? sum_of_lanes(context, scan.expr) : "lazy_scan_prod";
  const char* const step = scan.along_lanes ? of_lanes : sums ? "lazy_add" : "lazy_mul";
  for (int copy = 0; copy < (scan.vector ? body.copies : 1); ++copy) {
    const Body own{copy, body.copies, body.last_masked};
    const std::string before = scan.accumulator(copy);
    const std::string value = read(context, scan.expr.arguments[0], own, scan.vector);
    const std::string next = context.call(step, scan.type, {before, value});
    if (!scan.vector) {
      out.line(before + " = " + next + ";");
      print_scalar(context, id, before, out);
      continue;
    }
    const std::string name = read_vector(context, id, own);
    out.line("const " + scan.type + " " + name + " = " + next + ";");
    out.line(before + " = " +
             (scan.along_lanes ? context.call("lazy_last_lane", scan.type, {name}) : name) + ";");
  }
}

}  // namespace torch_lazy::codegen
