// NestPrinter's prefetches. Where there are sweeps along rows of memory, these are asked for one
// sweep ahead, so that they arrive while another sweep computes; where there are none, or they go
// down columns, some lines ahead. The hardware's own prefetching ends with a page, and so with most
// rows. Without the former, cross entropy over rows of 8,192 floats takes 1.25 times as long,
// without the latter Adam 1.8 times (one core of a Zen 4).

#include <algorithm>

#include "codegen/cache_hints.h"
#include "codegen/loop_analysis.h"
#include "codegen/print_nest.h"

namespace torch_lazy::codegen {
namespace {

// Of a row. What a work item and the next one read and keep has to lie in a core's own cache at the
// same time.
constexpr int64_t kPrefetchedElements = 65536;

bool evaluates(const Sweep& sweep, ExprId id) {
  return std::find(sweep.exprs.begin(), sweep.exprs.end(), id) != sweep.exprs.end();
}

}  // namespace

std::vector<NestPrinter::Prefetch> NestPrinter::prefetches_in(size_t sweep) const {
  const Kernel& kernel = context_.kernel;
  const std::vector<Sweep>& sweeps = context_.schedule.sweeps;
  if (context_.is_cuda() || context_.target.lanes == 1 || !along_reduction()) return {};
  if (kernel.parallel.empty() || kernel.reduction.size() != 1 || !kernel.reduction_total.is(0))
    return {};
  const auto is_row_of_work_item = [&](ExprId id) {
    const Expr& expr = kernel.exprs[id];
    return expr.op == Op::kLoad && accesses_.is_row_of_memory(id) &&
           !expr.access.strides[kernel.parallel.size() - 1].is(0);
  };
  std::vector<Prefetch> prefetches;
  if (sweep + 1 < sweeps.size()) {
    for (ExprId id : sweeps[sweep + 1].exprs) {
      const bool is_first = std::none_of(sweeps.begin(), sweeps.begin() + sweep + 1,
                                         [&](const Sweep& other) { return evaluates(other, id); });
      if (is_first && is_row_of_work_item(id)) prefetches.push_back({id, false});
    }
  }
  // The second sweep often has all it needs at hand and is busy computing; the last one stores.
  if (sweep == 1) {
    for (ExprId id : sweeps[0].exprs) {
      if (is_row_of_work_item(id)) prefetches.push_back({id, true});
    }
  }
  return prefetches;
}

void NestPrinter::print_prefetch_range() {
  for (size_t sweep = 0; sweep < context_.schedule.sweeps.size(); ++sweep) {
    if (prefetches_in(sweep).empty()) continue;
    out_.line("const int64 ahead = " + name_of_size(context_.kernel.reduction.back()) +
              " <= " + std::to_string(kPrefetchedElements) + " ? -1 : 0;");
    return;
  }
}

// Addresses beyond the end of memory do no harm; where rows are too long all are the row's first.
void NestPrinter::print_prefetches(const Body& body) {
  for (const Prefetch& prefetch : prefetches_) {
    const Expr& expr = context_.kernel.exprs[prefetch.load];
    std::string row = accesses_.row_pointer(prefetch.load);
    if (prefetch.of_next_work_item) {
      row += " + " + name_of_size(expr.access.strides[context_.kernel.parallel.size() - 1]);
    }
    const int64_t elements = kCacheLineBytes / bytes_of(expr.type);
    for (int64_t first = 0; first < context_.target.lanes; first += elements) {
      std::string index = lane_index(context_, body);
      if (first > 0) index += " + " + std::to_string(first);
      if (body.copy > 0 || first > 0) index = "(" + index + ")";
      out_.line(context_.call("lazy_prefetch", {row + " + (" + index + " & ahead)"}) + ";");
    }
  }
}

bool NestPrinter::fetches_ahead() const {
  return context_.kernel.fetch_ahead_bytes > 0 && !context_.is_cuda() && !context_.is_jammed();
}

void NestPrinter::print_fetches_ahead(const Body& body) {
  if (!fetches_ahead()) return;
  for (ExprId id : context_.schedule.rows[0]) print_fetch_ahead(id, body);
  for (uint32_t number : context_.schedule.row_stores) print_fetch_to_write_ahead(number, body);
}

// Of what no earlier sweep has read, and what is read in the innermost loop.
void NestPrinter::print_fetches_ahead(const Sweep& sweep, const Body& body) {
  if (!fetches_ahead() || along_reduction()) return;
  const std::vector<Sweep>& sweeps = context_.schedule.sweeps;
  for (ExprId id : sweep.exprs) {
    const bool is_first = std::none_of(sweeps.begin(), sweeps.begin() + sweep_,
                                       [&](const Sweep& other) { return evaluates(other, id); });
    if (is_first && depth_of(id) == innermost()) print_fetch_ahead(id, body);
  }
  for (uint32_t number : sweep.stores) print_fetch_to_write_ahead(number, body);
}

void NestPrinter::print_fetch_ahead(ExprId load, const Body& body) {
  const Expr& expr = context_.kernel.exprs[load];
  if (expr.op == Op::kLoad && accesses_.is_row_of_memory(load))
    print_fetch_ahead("lazy_prefetch", expr.buffer, expr.access, body);
}

void NestPrinter::print_fetch_to_write_ahead(uint32_t number, const Body& body) {
  const Store& store = context_.kernel.stores[number];
  const bool fetched_to_read = is_read(context_.kernel, store.buffer);
  if (!fetched_to_read && !accesses_.is_nontemporal(store) && accesses_.is_row_of_memory(store))
    print_fetch_ahead("lazy_prefetch_to_write", store.buffer, store.access, body);
}

// Each line once, where a body's copies share lines.
void NestPrinter::print_fetch_ahead(const std::string& function, uint32_t buffer,
                                    const Access& access, const Body& body) {
  const int64_t element = bytes_of(context_.kernel.buffers[buffer].type);
  const int64_t lanes = context_.target.lanes;
  for (int copy = 0; copy < body.copies; ++copy) {
    if (copy * lanes * element % kCacheLineBytes != 0) continue;
    const std::string address =
        accesses_.address(buffer, access, {copy, body.copies, body.last_masked});
    for (int64_t first = 0; first < lanes; first += kCacheLineBytes / element) {
      const std::string ahead = std::to_string(context_.kernel.fetch_ahead_bytes / element + first);
      out_.line(context_.call(function, {address + " + " + ahead}) + ";");
    }
  }
}

}  // namespace torch_lazy::codegen
