#include "codegen/print_nest.h"

#include <algorithm>

#include "codegen/op_cost.h"
#include "codegen/print_arguments.h"
#include "codegen/print_expr.h"

namespace torch_lazy::codegen {
namespace {

bool is_multiple(Size size, int64_t of) {
  return !size.slot && size.value % of == 0;
}

}  // namespace

int copies_within(Size extent, int copies, int lanes) {
  while (!extent.slot && copies > 1 && extent.value < int64_t{copies} * lanes) copies /= 2;
  return copies;
}

std::string least(const std::string& a, const std::string& b) {
  return a + " < " + b + " ? " + a + " : " + b;
}

bool NestPrinter::tile_ends_in_pairs(const Kernel& kernel, const Target& target) {
  return kernel.axis == Axis::kParallel && !kernel.reduction.empty() && target.masks_are_free();
}

namespace {

// Vector registers of the accumulators of one vector of columns.
int64_t accumulator_registers(const Kernel& kernel) {
  int64_t bytes = 0;
  for (const Expr& expr : kernel.exprs) {
    if (!is_reduction(expr.op)) continue;
    const bool is_arg = is_arg_reduction(expr.op);
    bytes += bytes_of(kernel.exprs[size_t(expr.arguments[0])].type) + (is_arg ? 8 : 0);
  }
  return (bytes + 3) / 4;
}

}  // namespace

int NestPrinter::tile_copies(const Kernel& kernel, const Target& target, const Schedule& schedule) {
  if (target.kind == Target::Kind::kCuda || kernel.parallel.empty()) return 1;
  if (schedule.sweeps.empty()) return kernel.pairs ? 2 : 1;
  if (kernel.axis == Axis::kReduction) return 1;
  if (is_unrolled(kernel)) return 1;  // the steps are as good
  if (kernel.jam.steps > 1) return kernel.jam.vectors;
  int cost = 0;
  for (const Sweep& sweep : schedule.sweeps) cost += cost_of(kernel, sweep);
  // Columns are rather read in long pieces: neighbouring lines of memory come together.
  const bool long_pieces =
      cost <= 3 && accumulator_registers(kernel) <= 2 && tile_ends_in_pairs(kernel, target);
  const int most = long_pieces ? 8 : 4;
  return copies_within(kernel.parallel.back(), cost <= 8 ? most : cost <= 24 ? 2 : 1, target.lanes);
}

// Threads that would do again what one does, for a single point, might read what that one has
// written by then.
void NestPrinter::print_leaving() {
  const Kernel& kernel = context_.kernel;
  const bool point = kernel.parallel.empty() && kernel.reduction.empty();
  if (!context_.is_cuda() || !point) {
    out_.line("if (begin >= end) return;");
  } else if (kernel.instances > 1) {
    out_.line("if (begin >= end || threadIdx.x != 0) return;");
  } else {
    out_.line("if (begin >= end || (blockIdx.x | threadIdx.x | threadIdx.y) != 0) return;");
  }
}

void NestPrinter::print() {
  print_leaving();
  const bool batch = context_.kernel.instances > 1;
  if (!batch) print_values_of_all_items();
  open_work_items();
  if (batch) {
    print_instance();
    print_values_of_all_items();
  }
  if (context_.is_cuda()) {
    print_digits(work_item_digits(), "const " + context_.index_type(), batch ? "own_item" : "item");
  }
  if (context_.transposes()) {
    print_transposed();
    out_.close();
    return;
  }
  print_work_item_scalars();
  print_reduction_range();
  print_held_row();
  const Kernel& kernel = context_.kernel;
  if (along_reduction() || kernel.parallel.empty()) {
    print_tile(Body{});
  } else {
    const std::string index = "const " + context_.index_type() + " ";
    out_.line(index + "first = block * " + name_of_size(kernel.block) + ";");
    const std::string end = "first + " + name_of_size(kernel.block);
    out_.line(index + "last = " + least(end, name_of_size(kernel.parallel.back())) + ";");
    if (context_.shares_steps()) {
      print_columns();
      out_.close();
      return;
    }
    if (context_.has_packets()) {
      print_packets({"first", "last"}, context_.schedule.rows[0], context_.schedule.row_stores,
                    [&](const Body& body) { print_tile(body); });
      out_.close();
      return;
    }
    const int copies = tile_copies(kernel, context_.target, context_.schedule);
    const int64_t step = int64_t{copies} * context_.target.lanes;
    print_lanes({"first", "last"}, copies,
                is_multiple(kernel.block, step) && is_multiple(kernel.parallel.back(), step),
                any_nontemporal() || any_tile(), [&](const Body& body) {
                  print_fetches_ahead(body);
                  print_tile(body);
                });
  }
  if (!context_.is_cuda()) print_next_work_item();
  out_.close();
  if (any_nontemporal()) out_.line(context_.call("lazy_end_nontemporal", {}) + ";");
}

void NestPrinter::print_values_of_all_items() {
  print_scratch();
  print_kernel_scalars();
  print_prefetch_range();
  print_block_counts();
}

// Which of the instances the work item is of.
void NestPrinter::print_instance() {
  const std::string& name = context_.kernel.name;
  out_.line("const int instance = " + context_.call("lazy_instance_of", {"batch.ends", "item"}) +
            ";");
  out_.line("const " + name + "_arguments& arguments = batch.instances[instance];");
  print_arguments(context_, "arguments.", out_);
  const std::string index = context_.index_type();
  out_.line("const " + index + " own_item = item - (" + index +
            ")(instance > 0 ? batch.ends[instance - 1] : 0);");
}

void NestPrinter::print_scratch() {
  if (!context_.uses_scratch()) return;
  const Kernel& kernel = context_.kernel;
  std::string elements;
  for (Size extent : kernel.reduction) {
    if (!elements.empty()) elements += " * ";
    elements += name_of_size(extent);
  }
  std::string run =
      "(" + elements + " + 127) / 64 * " + std::to_string(int64_t{64} * context_.scratch_lanes);
  out_.line("const int64 run = " + run + ";");
  for (size_t i = 0; i < kernel.exprs.size(); ++i) {
    const int32_t place = context_.schedule.scratch_places[i];
    if (place < 0) continue;
    const std::string type = scalar_type(kernel.exprs[i].type);
    out_.line(type + "* const m" + std::to_string(i) + " = (" + type + "*)(scratch + " +
              std::to_string(place) + " * run);");
  }
}

void NestPrinter::print_kernel_scalars() {
  for (ExprId id : context_.schedule.rows[0]) {
    if (context_.schedule.varying[id] != 0) continue;
    print_scalar_expr(context_, accesses_, id, out_);
  }
}

void NestPrinter::print_block_counts() {
  const Kernel& kernel = context_.kernel;
  if (context_.is_jammed()) {
    const std::string steps = std::to_string(kernel.jam.steps);
    out_.line("const int64 jams = (" + name_of_size(kernel.parallel[size_t(kernel.jam.dimension)]) +
              " + " + steps + " - 1) / " + steps + ";");
  }
  if (along_reduction() || kernel.parallel.empty()) return;
  const bool squares = context_.transposes();
  const std::string block =
      squares ? std::to_string(kernel.thread_loop.square) : name_of_size(kernel.block);
  if (squares) {
    out_.line("const " + context_.index_type() + " squares = (" +
              name_of_size(kernel.parallel[size_t(kernel.thread_loop.transposed)]) + " + " + block +
              " - 1) / " + block + ";");
  }
  out_.line("const " + context_.index_type() + " blocks = (" +
            name_of_size(kernel.parallel.back()) + " + " + block + " - 1) / " + block + ";");
}

void NestPrinter::open_work_items() {
  if (!context_.is_cuda()) print_first_work_item();
  if (context_.is_cuda()) {
    const std::string index = context_.index_type();
    out_.line("const int lane = threadIdx.x;");
    if (has_folds()) out_.line("int fold = 0;");
    if (context_.shares_steps() || context_.transposes()) {
      out_.open("for (" + index + " item = begin + (" + index +
                ")blockIdx.x; item < end; item += gridDim.x)");
      return;
    }
    out_.line("const " + index + " items = (" + index + ")gridDim.x * blockDim.y;");
    out_.open("for (" + index + " item = begin + (" + index +
              ")blockIdx.x * blockDim.y + threadIdx.y; item < end; item += items)");
  } else {
    out_.open("for (int64 item = begin; item < end; ++item)");
  }
}

std::vector<NestPrinter::Digit> NestPrinter::work_item_digits() const {
  const Kernel& kernel = context_.kernel;
  std::vector<Digit> digits;
  for (size_t i = 0; i < kernel.parallel.size(); ++i) {
    if (i == context_.lane_dimension) {
      digits.push_back({"block", "blocks"});
    } else if (context_.transposes() && i == size_t(kernel.thread_loop.transposed)) {
      digits.push_back({"square", "squares"});
    } else if (context_.is_jammed() && i == size_t(kernel.jam.dimension)) {
      digits.push_back({"jam", "jams"});
    } else {
      digits.push_back({"p" + std::to_string(i), name_of_size(kernel.parallel[i])});
    }
  }
  // Squares are gone through along the jammed dimension first (choose_loops).
  if (context_.is_jammed() && kernel.reduction.empty())
    std::rotate(digits.begin() + kernel.jam.dimension, digits.begin() + kernel.jam.dimension + 1,
                digits.end());
  return digits;
}

void NestPrinter::print_digits(const std::vector<Digit>& digits, const std::string& type,
                               const std::string& item) {
  std::string rest = item;
  for (size_t i = digits.size(); i-- > 0;) {
    const Digit& digit = digits[i];
    if (i == 0) {
      out_.line(type + " " + digit.name + " = " + rest + ";");
    } else {
      out_.line(type + " " + digit.name + " = " + rest + " % " + digit.extent + ";");
      out_.line("const " + context_.index_type() + " item" + std::to_string(i) + " = " + rest +
                " / " + digit.extent + ";");
      rest = "item" + std::to_string(i);
    }
  }
}

// Where a thread goes from one work item to the next, it counts: short rows take no longer than the
// divisions that a work item's number takes.
void NestPrinter::print_first_work_item() {
  print_digits(work_item_digits(), "int64", "begin");
}

void NestPrinter::print_next_work_item() {
  const std::vector<Digit> digits = work_item_digits();
  if (digits.empty()) return;
  for (size_t i = digits.size(); i-- > 1;) {
    out_.open("if (++" + digits[i].name + " == " + digits[i].extent + ")");
    out_.line(digits[i].name + " = 0;");
  }
  out_.line("++" + digits[0].name + ";");
  for (size_t i = 1; i < digits.size(); ++i) out_.close();
}

void NestPrinter::print_work_item_scalars() {
  if (context_.is_jammed()) print_jam_range();
  for (ExprId id : context_.schedule.rows[0]) {
    if (context_.schedule.varying[id] == 0 || context_.is_vector(id)) continue;
    if (context_.varies_by_step(id)) continue;
    const Expr& expr = context_.kernel.exprs[id];
    if (expr.op == Op::kLoad) accesses_.define_pointer(expr.buffer, expr.access, out_);
    print_scalar_expr(context_, accesses_, id, out_);
  }
  const auto define = [&](ExprId id) {
    const Expr& expr = context_.kernel.exprs[id];
    if (expr.op == Op::kLoad && context_.schedule.varying[id] != 0 && !context_.is_square(id)) {
      accesses_.define_pointer(expr.buffer, expr.access, out_);
    }
  };
  for (const auto& row : context_.schedule.rows) {
    for (ExprId id : row) define(id);
  }
  for (const Sweep& sweep : context_.schedule.sweeps) {
    for (ExprId id : sweep.exprs) define(id);
  }
  for (const Store& store : context_.kernel.stores) {
    accesses_.define_pointer(store.buffer, store.access, out_);
  }
  print_scalars_of_steps();
}

void NestPrinter::print_tile(const Body& body) {
  if (context_.is_jammed()) {
    print_jammed_tile(body);
    return;
  }
  const Schedule& schedule = context_.schedule;
  print_loaded_tiles(body);
  print_spilled_steps();
  for (size_t level = 0; level < schedule.rows.size(); ++level) {
    if (level > 0) print_sweep(level - 1, body);
    print_row_values(level, body);
  }
  print_row_stores(body);
}

void NestPrinter::print_row_values(size_t level, const Body& body) {
  for (ExprId id : context_.schedule.rows[level]) {
    if (is_reduction(context_.kernel.exprs[id].op)) continue;  // the sweep has defined it
    if (context_.is_vector(id) || level > 0) print_value(id, body);
  }
}

void NestPrinter::print_row_stores(const Body& body) {
  if (context_.schedule.row_stores.empty()) return;
  if (context_.shares_steps()) out_.open("if (threadIdx.y == 0)");
  for (uint32_t number : context_.schedule.row_stores) {
    const Store& store = context_.kernel.stores[number];
    const int copies = is_vector_store(context_, store) ? body.copies : 1;
    for (int copy = 0; copy < copies; ++copy) {
      out_.line(accesses_.store(store, {copy, body.copies, body.last_masked}));
    }
  }
  if (context_.shares_steps()) out_.close();
}

bool NestPrinter::any_nontemporal() const {
  const Schedule& schedule = context_.schedule;
  return nontemporal(schedule.row_stores) ||
         std::any_of(schedule.sweeps.begin(), schedule.sweeps.end(),
                     [&](const Sweep& sweep) { return nontemporal(sweep.stores); });
}

bool NestPrinter::nontemporal(const std::vector<uint32_t>& stores) const {
  return std::any_of(stores.begin(), stores.end(), [&](uint32_t number) {
    return accesses_.is_nontemporal(context_.kernel.stores[number]);
  });
}

void NestPrinter::print_lanes(const Range& range, int copies, bool whole_vectors, bool apart,
                              const PrintBody& print_body) {
  if (context_.is_cuda()) {
    out_.open("for (" + context_.index_type() + " i = " + range.first + " + lane; i < " +
              range.last + "; i += blockDim.x)");
    print_body(Body{});
    out_.close();
    return;
  }
  const int lanes = context_.target.lanes;
  const std::string step = std::to_string(int64_t{lanes} * copies);
  const bool masks = lanes > 1 && !whole_vectors;
  if (!masks && copies == 1) {
    out_.open("for (int64 i = " + range.first + "; i < " + range.last + "; i += " + step + ")");
    print_body(Body{});
    out_.close();
    return;
  }
  const bool only_masked = masks && copies == 1 && context_.target.masks_are_free() && !apart;
  if (only_masked) {
    out_.open("for (int64 i = " + range.first + "; i < " + range.last + "; i += " + step + ")");
    print_masked(range, 1, print_body);
    out_.close();
    return;
  }
  out_.open("");
  out_.line("int64 i = " + range.first + ";");
  const bool pairs =
      !whole_vectors && copies > 1 && tile_ends_in_pairs(context_.kernel, context_.target);
  if (!pairs || copies > 2 || apart) {
    out_.open("for (; i + " + step + " <= " + range.last + "; i += " + step + ")");
    print_body({0, copies, false});
    out_.close();
  }
  if (pairs) {
    out_.open("for (; i + " + std::to_string(lanes) + " < " + range.last +
              "; i += " + std::to_string(int64_t{2} * lanes) + ")");
    print_masked(range, 2, print_body);
    out_.close();
  }
  if (!whole_vectors) {
    // A mask costs: what is left behind copies may be a whole vector and more.
    const std::string lanes_left = "i + " + std::to_string(lanes) + " <= " + range.last;
    if (masks && copies > 1 && !context_.target.masks_are_free() && !context_.is_jammed()) {
      out_.open("for (; " + lanes_left + "; i += " + std::to_string(lanes) + ")");
      print_body(Body{});
      out_.close();
    }
    out_.open("for (; i < " + range.last + "; i += " + std::to_string(lanes) + ")");
    if (masks) {
      print_masked(range, 1, print_body);
    } else {
      print_body(Body{});
    }
    out_.close();
  }
  out_.close();
}

void NestPrinter::print_masked(const Range& range, int copies, const PrintBody& print_body) {
  const std::string lanes = std::to_string(context_.target.lanes);
  std::string left = range.last + " - i";
  if (copies > 1) left += " - " + std::to_string(int64_t{copies - 1} * context_.target.lanes);
  out_.line("const int n = " + least(left, lanes) + ";");
  print_body({0, copies, true});
}

}  // namespace torch_lazy::codegen
