// NestPrinter's sweeps over the reduction dimensions.

#include <algorithm>

#include "codegen/choose_pairs.h"
#include "codegen/op_cost.h"
#include "codegen/print_expr.h"
#include "codegen/print_jam.h"
#include "codegen/print_nest.h"
#include "codegen/print_scan.h"
#include "codegen/print_tiles.h"

namespace torch_lazy::codegen {

void NestPrinter::print_reduction_range() {
  const Kernel& kernel = context_.kernel;
  if (kernel.reduction.empty()) return;
  const std::string index = "const " + context_.index_type() + " ";
  steps_ = {"0", name_of_size(kernel.reduction.front())};
  if (!kernel.reduction_total.is(0)) {
    const size_t chunks = kernel.parallel.size() - (along_reduction() ? 1 : 2);
    out_.line(index + "chunk_first = p" + std::to_string(chunks) + " * " + steps_.last + ";");
    out_.line(index + "chunk_last = " +
              least("chunk_first + " + steps_.last, name_of_size(kernel.reduction_total)) + ";");
    steps_ = {"chunk_first", "chunk_last"};
  }
  if (context_.is_flat()) {
    std::string inside;
    for (size_t depth = 1; depth <= innermost(); ++depth)
      inside += " * " + name_of_size(kernel.reduction[depth]);
    out_.line(index + "flat_first = " + steps_.first + inside + ";");
    out_.line(index + "flat_last = " + steps_.last + inside + ";");
    steps_ = {"flat_first", "flat_last"};
  }
  const bool nested = innermost() > 0 && !context_.is_flat();
  reduction_ = nested ? Range{"0", name_of_size(kernel.reduction.back())} : steps_;
}

// Of reduction dimensions: that of the innermost loop in which the expression changes.
size_t NestPrinter::depth_of(ExprId id) const {
  const Dimensions reduction = context_.schedule.varying[id] >> context_.kernel.parallel.size();
  size_t depth = 0;
  while (reduction >> (depth + 1) != 0) ++depth;
  return depth;
}

void NestPrinter::print_sweep(size_t number, const Body& tile) {
  const Sweep& sweep = context_.schedule.sweeps[number];
  const int copies = along_reduction() ? sweep_copies(sweep) : tile.copies;
  const bool staged = is_staged(sweep);
  sweep_ = number;
  prefetches_ = prefetches_in(number);
  Reductions reductions;
  for (ExprId id : sweep.reductions) reductions.emplace_back(context_, id, copies, staged);

  for (const auto& reduction : reductions) reduction.declare(reduction_.first, out_);
  declare_scans(context_, number, copies, out_);
  print_tiles_to_store(sweep);
  const Kernel& kernel = context_.kernel;
  const std::string index_type = context_.index_type();
  const size_t around = context_.is_flat() ? 0 : innermost();  // loops around the innermost one
  for (size_t depth = 0; depth < around; ++depth) {
    if (is_unrolled(kernel)) out_.line("#pragma unroll");
    const std::string index = "r" + std::to_string(depth);
    const Range range = depth == 0 ? steps_ : Range{"0", name_of_size(kernel.reduction[depth])};
    out_.open("for (" + index_type + " " + index + " = " + range.first + "; " + index + " < " +
              range.last + "; ++" + index + ")");
    print_sweep_exprs(sweep, depth, tile);
  }
  if (context_.is_cuda() && kernel.thread_loop.is_long_row()) {
    print_long_row(sweep, reductions);
  } else if (staged) {
    int64_t steps = kBlockSteps;
    if (along_reduction()) steps *= int64_t{copies} * context_.target.lanes;
    if (context_.shares_steps()) steps *= kernel.thread_loop.rows;
    std::string block = std::to_string(steps);
    if (along_reduction() && context_.is_cuda()) block += " * (" + index_type + ")blockDim.x";
    out_.open("for (" + index_type + " part = " + reduction_.first + "; part < " + reduction_.last +
              "; part += " + block + ")");
    out_.line("const " + index_type + " part_last = " + least("part + " + block, reduction_.last) +
              ";");
    for (const auto& reduction : reductions) reduction.begin_block(out_);
    print_innermost_loop(sweep, reductions, {"part", "part_last"}, tile);
    for (const auto& reduction : reductions) reduction.end_block(out_);
    out_.close();
  } else {
    print_innermost_loop(sweep, reductions, reduction_, tile);
  }
  for (size_t depth = 0; depth < around; ++depth) out_.close();
  print_stored_tiles(sweep, tile);
  if (context_.is_cuda() && (along_reduction() || context_.shares_steps())) {
    print_folds(reductions);
  } else if (context_.is_jammed()) {
    jammed_ = std::move(reductions);
  } else {
    for (const auto& reduction : reductions) reduction.finish(out_);
  }
}

void NestPrinter::print_innermost_loop(const Sweep& sweep, const Reductions& reductions,
                                       const Range& range, const Body& tile) {
  if (context_.is_flat()) {
    print_flat_loop(sweep, reductions, range, tile);
    return;
  }
  const Kernel& kernel = context_.kernel;
  const bool needs_flat = needs_flat_index(sweep) && innermost() > 0;
  const std::string index_type = context_.index_type();
  if (!along_reduction()) {
    const std::string index = "r" + std::to_string(innermost());
    if (is_unrolled(kernel)) out_.line("#pragma unroll");
    const bool shared = context_.shares_steps();
    out_.open("for (" + index_type + " " + index + " = " + range.first +
              (shared ? " + (int)threadIdx.y; " : "; ") + index + " < " + range.last + "; " +
              (shared ? index + " += " + std::to_string(kernel.thread_loop.rows) : "++" + index) +
              ")");
    if (needs_flat)
      out_.line("const " + index_type + " flat = " + outer_flat_index() + " + " + index + ";");
    print_innermost(sweep, reductions, tile);
    out_.close();
    return;
  }
  if (needs_flat) out_.line("const " + index_type + " flat = " + outer_flat_index() + ";");
  if (context_.has_packets()) {
    print_packets(range, sweep.exprs, sweep.stores,
                  [&](const Body& body) { print_innermost(sweep, reductions, body); });
    return;
  }
  const int copies = sweep_copies(sweep);
  const int64_t step = int64_t{copies} * context_.target.lanes;
  const Size extent = kernel.reduction.back();
  const Size total = kernel.reduction_total;
  const bool whole =
      !extent.slot && extent.value % step == 0 && !total.slot && total.value % step == 0;
  print_lanes(range, copies, whole, nontemporal(sweep.stores) || any_tile(),
              [&](const Body& body) { print_innermost(sweep, reductions, body); });
}

void NestPrinter::print_flat_loop(const Sweep& sweep, const Reductions& reductions,
                                  const Range& range, const Body& tile) {
  const Kernel& kernel = context_.kernel;
  std::string first = range.first, step = "blockDim.x";
  if (along_reduction()) {
    first += " + lane";
  } else if (context_.shares_steps()) {
    first += " + (int)threadIdx.y";
    step = std::to_string(kernel.thread_loop.rows);
  } else {
    step = "1";
  }
  out_.open("for (" + context_.index_type() + " flat = " + first + "; flat < " + range.last +
            "; flat += " + step + ")");
  std::vector<Digit> digits;
  for (size_t depth = 0; depth <= innermost(); ++depth) {
    const bool of_lanes = along_reduction() && depth == innermost();
    digits.push_back(
        {of_lanes ? "i" : "r" + std::to_string(depth), name_of_size(kernel.reduction[depth])});
  }
  print_digits(digits, "const " + context_.index_type(), "flat");
  for (size_t depth = 0; depth < innermost(); ++depth) print_sweep_exprs(sweep, depth, tile);
  print_innermost(sweep, reductions, tile);
  out_.close();
}

void NestPrinter::print_sweep_exprs(const Sweep& sweep, size_t depth, const Body& body) {
  for (ExprId id : sweep.exprs) {
    if (depth_of(id) == depth && !context_.varies_by_step(id)) print_value(id, body);
  }
}

void NestPrinter::print_value(ExprId id, const Body& body) {
  if (context_.is_added_product(id)) return;
  if (is_scan(context_.kernel.exprs[id].op)) {
    print_scan(context_, sweep_, id, body, out_);
    return;
  }
  if (!context_.is_vector(id)) {
    print_scalar_expr(context_, accesses_, id, out_);
    return;
  }
  for (int copy = 0; copy < body.copies; ++copy)
    print_vector_expr(context_, accesses_, id, {copy, body.copies, body.last_masked}, out_);
}

void NestPrinter::print_innermost(const Sweep& sweep, const Reductions& reductions,
                                  const Body& body) {
  std::vector<Body> copies;
  copies.reserve(size_t(body.copies));
  for (int copy = 0; copy < body.copies; ++copy)
    copies.push_back({copy, body.copies, body.last_masked});
  for (const Body& copy : copies) print_prefetches(copy);
  print_fetches_ahead(sweep, body);
  for (ExprId id : sweep.reloaded) {
    const Type type = context_.kernel.exprs[id].type;
    const std::string load = std::string("lazy_load_") + scalar_type(type);
    for (const Body& copy : copies) {
      const std::string value = context_.uses_scratch()
                                    ? context_.call(load, {scratch_address(id, copy)})
                                : held_ == Held::kNowhere ? accesses_.load(id, copy)
                                                          : spilled_step(id);
      out_.line(std::string("const ") + vector_type(type) + " " + read_vector(context_, id, copy) +
                " = " + value + ";");
    }
  }
  print_sweep_exprs(sweep, innermost(), body);
  for (ExprId id : sweep.spilled) {
    if (held_ == Held::kNowhere) break;
    const std::string store =
        std::string("lazy_store_") + scalar_type(context_.kernel.exprs[id].type);
    for (const Body& copy : copies) {
      const std::string value = read_vector(context_, id, copy);
      out_.line(context_.uses_scratch()
                    ? context_.call(store, {scratch_address(id, copy), value}) + ";"
                    : spilled_step(id) + " = " + value + ";");
    }
  }
  if (context_.is_jammed()) {
    open_jammed_steps(context_, out_);
    for (const ExprId id : sweep.exprs)
      if (context_.varies_by_step(id)) print_value(id, body);
  }
  for (const auto& reduction : reductions) {
    for (const Body& copy : copies) reduction.accumulate(copy, flat_index(copy), out_);
  }
  if (context_.is_jammed()) out_.close();
  for (uint32_t number : sweep.stores) {
    const Store& store = context_.kernel.stores[number];
    const bool vector = is_vector_store(context_, store);
    const bool in_tile = whole_tile(context_, store).has_value();
    for (const Body& copy : copies) {
      if (in_tile)
        out_.line(name_of_stored_tile(context_, number) + "[" + tile_index(context_, store.access) +
                  "] = " + read_vector(context_, store.expr, copy) + ";");
      else if (vector || copy.copy == 0)
        out_.line(accesses_.store(store, copy));
    }
  }
}

// More than one where the sweep would mostly wait for a chain: of additions, or in a function.
int NestPrinter::sweep_copies(const Sweep& sweep) const {
  if (context_.is_cuda() || context_.is_jammed() || sweep.reductions.empty()) return 1;
  for (ExprId id : sweep.reductions) {
    if (is_arg_reduction(context_.kernel.exprs[id].op)) return 1;
  }
  const int cost = cost_of(context_.kernel, sweep);
  const int lanes = context_.target.lanes;
  const bool pairs = cost <= 4 || gain_by_pairs(context_.kernel, sweep.exprs, lanes);
  return copies_within(context_.kernel.reduction.back(), pairs ? 2 : 1, lanes);
}

bool NestPrinter::is_staged(const Sweep& sweep) const {
  const Kernel& kernel = context_.kernel;
  if (kernel.short_sums || is_unrolled(kernel)) return false;
  const bool few_steps =  // of each thread
      kernel.thread_loop.holds_row ? !kernel.thread_loop.has_rest : context_.is_short_row();
  if (context_.is_cuda() && few_steps) return false;
  return std::any_of(sweep.reductions.begin(), sweep.reductions.end(),
                     [&](ExprId id) { return is_floating_sum(kernel.exprs[id]); });
}

bool NestPrinter::needs_flat_index(const Sweep& sweep) const {
  if (!sweep.reloaded.empty() || !sweep.spilled.empty()) return true;
  return std::any_of(sweep.reductions.begin(), sweep.reductions.end(),
                     [&](ExprId id) { return is_arg_reduction(context_.kernel.exprs[id].op); });
}

// The flattened index of the innermost loop's first step, where there are loops around it.
std::string NestPrinter::outer_flat_index() const {
  std::string flat = "r0";
  for (size_t depth = 1; depth < innermost(); ++depth) {
    flat = "(" + flat + " * " + name_of_size(context_.kernel.reduction[depth]) + " + r" +
           std::to_string(depth) + ")";
  }
  return flat + " * " + name_of_size(context_.kernel.reduction.back());
}

std::string NestPrinter::flat_index(const Body& body) const {
  std::string index =
      along_reduction() ? lane_index(context_, body) : "r" + std::to_string(innermost());
  if (context_.is_flat()) return "flat";
  if (innermost() == 0) return index;
  return along_reduction() ? "flat + " + index : "flat";
}

std::string NestPrinter::spilled_step(ExprId id) const {
  if (context_.is_cuda()) return held_element(id);
  return "m" + std::to_string(id) + "[" + flat_index(Body{}) + "]";
}

std::string NestPrinter::scratch_address(ExprId id, const Body& body) const {
  std::string element = flat_index(body);
  if (reduction_.first != "0") element = "(" + element + " - " + reduction_.first + ")";
  std::string address = "m" + std::to_string(id) + " + " + element;
  if (along_reduction()) return address;
  address += " * " + std::to_string(context_.scratch_lanes);
  if (body.copy > 0) address += " + " + std::to_string(body.copy * context_.target.lanes);
  return address;
}

}  // namespace torch_lazy::codegen
