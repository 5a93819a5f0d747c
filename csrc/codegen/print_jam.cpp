#include "codegen/print_jam.h"

#include <algorithm>

#include "codegen/op_cost.h"
#include "codegen/print_expr.h"
#include "codegen/print_nest.h"

namespace torch_lazy::codegen {
namespace {

std::string extent_of(const PrintContext& context) {
  return name_of_size(context.kernel.parallel[size_t(context.kernel.jam.dimension)]);
}

std::string index_of(const PrintContext& context) {
  return name_of_index(context, size_t(context.kernel.jam.dimension));
}

// Of what follows from a step's sums, in the units of cost_of: as much as storing them and loading
// them again, twice.
constexpr int kDearStep = 16;

}  // namespace

void open_steps(const PrintContext& context, SourceWriter& out) {
  out.line("#pragma unroll");
  out.open("for (int step = 0; step < " + std::to_string(context.kernel.jam.steps) + "; ++step)");
}

void open_jammed_steps(const PrintContext& context, SourceWriter& out) {
  open_steps(context, out);
  out.line("const int64 " + index_of(context) + " = " +
           least("jam_first + step", extent_of(context) + " - 1") + ";");
}

bool goes_step_by_step(const PrintContext& context) {
  if (!context.is_jammed() || context.schedule.sweeps.empty()) return false;
  int cost = 0;
  for (const ExprId id : context.schedule.rows[1]) cost += cost_of(context.kernel.exprs[id]);
  return cost >= kDearStep;
}

void open_present_steps(const PrintContext& context, SourceWriter& out) {
  const bool in_turn = goes_step_by_step(context);
  if (in_turn) {
    out.line("#pragma nounroll");
    out.open("for (int step = 0; step < jam_count; ++step)");
  } else {
    open_steps(context, out);
  }
  out.line("const int64 " + index_of(context) + " = jam_first + step;");
  if (!in_turn) out.open("if (" + index_of(context) + " < " + extent_of(context) + ")");
}

void close_present_steps(const PrintContext& context, SourceWriter& out) {
  if (!goes_step_by_step(context)) out.close();
  out.close();
}

void NestPrinter::print_jam_range() {
  const std::string steps = std::to_string(context_.kernel.jam.steps);
  out_.line("const int64 jam_first = jam * " + steps + ";");
  const std::vector<ExprId>& row = context_.schedule.rows[0];
  if (goes_step_by_step(context_) ||
      std::ranges::any_of(row, [&](ExprId id) { return context_.is_square(id); })) {
    const std::string left = extent_of(context_) + " - jam_first";
    out_.line("const int jam_count = " + least(left, steps) + ";");
  }
}

void NestPrinter::print_squares(const Body& body) {
  for (const ExprId id : context_.schedule.rows[0]) {
    if (!context_.is_square(id)) continue;
    out_.line(std::string(vector_type(context_.kernel.exprs[id].type)) + " " +
              name_of_loaded_packet(context_, id) + "[" +
              std::to_string(context_.kernel.jam.steps) + "];");
    out_.line(accesses_.load_square(id, body) + ";");
  }
}

void NestPrinter::print_scalars_of_steps() {
  const auto read_in_sweeps = [&](ExprId id) { return context_.by_steps[id]; };
  const std::vector<ExprId>& row = context_.schedule.rows[0];
  if (std::none_of(row.begin(), row.end(), read_in_sweeps)) return;
  const std::string steps = "[" + std::to_string(context_.kernel.jam.steps) + "]";
  for (const ExprId id : row) {
    if (!read_in_sweeps(id)) continue;
    const Type type = context_.kernel.exprs[id].type;
    const auto declare = [&](const char* type, std::string name) {
      name.resize(name.find('['));
      out_.line(std::string(type) + " " + name + steps + ";");
    };
    if (context_.as_scalars[id]) declare(scalar_type(type), name_of_scalar(context_, id));
    if (context_.as_vectors[id]) declare(vector_type(type), name_of_splat(context_, id));
  }
  open_jammed_steps(context_, out_);
  for (const ExprId id : row)
    if (context_.varies_by_step(id) && !context_.is_vector(id))
      print_scalar_expr(context_, accesses_, id, out_);
  out_.close();
}

void NestPrinter::print_jammed_tile(const Body& body) {
  const auto print_rows = [&](size_t level, bool by_step) {
    for (const ExprId id : context_.schedule.rows[level]) {
      if (context_.varies_by_step(id) != by_step) continue;
      if (is_reduction(context_.kernel.exprs[id].op)) continue;  // it is finished already
      // Other scalars are known since the work item began.
      if (context_.is_vector(id) || level > 0 || (by_step && !context_.by_steps[id]))
        print_value(id, body);
    }
  };
  const bool sums = !context_.schedule.sweeps.empty();
  print_rows(0, /*by_step=*/false);
  print_squares(body);
  if (sums) print_sweep(0, body);
  if (goes_step_by_step(context_))
    for (const ReductionPrinter& reduction : jammed_) reduction.set_aside(out_);
  open_present_steps(context_, out_);
  for (const ReductionPrinter& reduction : jammed_) reduction.finish(out_);
  print_rows(0, /*by_step=*/true);
  if (sums) {
    print_rows(1, /*by_step=*/false);
    print_rows(1, /*by_step=*/true);
  }
  print_row_stores(body);
  close_present_steps(context_, out_);
}

}  // namespace torch_lazy::codegen
