#include "codegen/choose_loops.h"

#include <c10/util/accumulate.h>

#include <algorithm>
#include <unordered_map>

#include "codegen/choose_jam.h"
#include "codegen/choose_lanes.h"
#include "codegen/choose_pairs.h"
#include "codegen/cut_reduction.h"
#include "codegen/divide.h"
#include "codegen/draft_axes.h"
#include "codegen/loop_analysis.h"
#include "codegen/op_cost.h"
#include "codegen/thread_loop.h"

namespace torch_lazy::codegen {
namespace {

// Elements of a block where lanes run along a parallel axis: one stream of 64 KB of floats.
constexpr int64_t kLongestBlock = 16384;
// On a GPU a block's threads share it, and a device wants hundreds of them.
constexpr int64_t kLongestCudaBlock = 2048;

// Elements along the lanes of a block of squares, which are gone through along the jammed dimension
// first: the lines of a few pages are then read to their ends before they leave the caches.
constexpr int64_t kBlockOfSquares = 64;
// Multiplications that take one thread longer than it takes to share them, if eight are jammed.
constexpr double kWorkOfThreads = 1 << 20;

// Drops expressions that no store needs, and buffers that nothing touches.
void prune(Draft& draft) {
  std::vector<bool> needed(draft.exprs.size());
  for (const Store& store : draft.stores) {
    needed[size_t(store.expr)] = true;
    for (const Access::Indirect& indirect : store.access.indirect)
      needed[size_t(indirect.index)] = true;
    if (store.predicate != kNoPredicate) needed[size_t(store.predicate)] = true;
  }
  for (size_t i = draft.exprs.size(); i-- > 0;) {
    if (!needed[i]) continue;
    const Expr& expr = draft.exprs[i];
    for (const ExprId argument : expr.arguments) needed[size_t(argument)] = true;
    for (const Access::Indirect& indirect : expr.access.indirect)
      needed[size_t(indirect.index)] = true;
    if (expr.predicate != kNoPredicate) needed[size_t(expr.predicate)] = true;
  }
  std::vector<ExprId> renumbered(draft.exprs.size(), kNoId);
  std::vector<int64_t> buffers(draft.buffers.size(), -1);
  std::vector<Buffer> used_buffers;
  std::vector<BufferBinding> used_bindings;
  const auto use_buffer = [&](uint32_t& buffer) {
    if (buffers[buffer] < 0) {
      buffers[buffer] = int64_t(used_buffers.size());
      used_buffers.push_back(draft.buffers[buffer]);
      used_bindings.push_back(draft.bindings[buffer]);
    }
    buffer = uint32_t(buffers[buffer]);
  };
  const auto use_access = [&](Access& access) {
    for (Access::Indirect& indirect : access.indirect)
      indirect.index = renumbered[size_t(indirect.index)];
  };
  std::vector<Expr> exprs;
  for (size_t i = 0; i < draft.exprs.size(); ++i) {
    if (!needed[i]) continue;
    Expr expr = std::move(draft.exprs[i]);
    for (ExprId& argument : expr.arguments) argument = renumbered[size_t(argument)];
    if (expr.op == Op::kLoad) {
      use_buffer(expr.buffer);
      use_access(expr.access);
      if (expr.predicate != kNoPredicate) expr.predicate = renumbered[size_t(expr.predicate)];
    }
    renumbered[i] = ExprId(exprs.size());
    exprs.push_back(std::move(expr));
  }
  for (Store& store : draft.stores) {
    store.expr = renumbered[size_t(store.expr)];
    use_buffer(store.buffer);
    use_access(store.access);
    if (store.predicate != kNoPredicate) store.predicate = renumbered[size_t(store.predicate)];
  }
  draft.exprs = std::move(exprs);
  draft.buffers = std::move(used_buffers);
  draft.bindings = std::move(used_bindings);
  for (size_t i = 0; i < draft.buffers.size(); ++i)
    draft.buffers[i].name = (draft.bindings[i].written ? "out" : "in") + std::to_string(i);
}

// Turns a draft with its axes in order into a kernel whose concrete numbers are slots.
class Finisher {
 public:
  // `reduction_total`, where the draft is the chunks of a cut reduction, with the lanes along
  // `lanes`.
  Finisher(Draft draft, const LowerContext& context, int64_t reduction_total = 0,
           Axis lanes = Axis::kReduction)
      : draft_(std::move(draft)),
        context_(context),
        reduction_total_(reduction_total),
        lanes_of_chunks_(lanes) {}

  LoweredKernel finish() {
    prune(draft_);
    Kernel& kernel = lowered_.kernel;
    const Lanes lanes = lanes_of_target();
    kernel.axis = lanes.axis;
    const size_t parallel = parallel_count(draft_);
    choose_work_items(parallel);
    for (size_t axis = 0; axis < draft_.extents.size(); ++axis) {
      const int64_t extent = draft_.extents[axis];
      if (axis < parallel)
        kernel.parallel.push_back(slot(extent));
      else
        kernel.reduction.push_back(lanes.unrolled ? Size::constant(extent) : slot(extent));
    }
    if (reduction_total_ > 0) kernel.reduction_total = slot(reduction_total_);
    kernel.short_sums = !lanes.unrolled && has_short_sums(parallel);
    for_each_access(draft_, [&](Access& access, Type) {
      access.offset = size(access.offset.value);
      for (size_t axis = 0; axis < access.strides.size(); ++axis) {
        Size& stride = access.strides[axis];
        // The strides of tiles are constants too.
        const bool in_tile = !context_.is_cuda() && (axis == lane_dimension(kernel) ||
                                                     (lanes.unrolled && axis >= parallel));
        const bool reversed =
            stride.value == -1 && !context_.is_cuda() && axis == lane_dimension(kernel);
        if (reversed) continue;
        if (!in_tile || stride.value < 0 || stride.value > kWidestTile) stride = size(stride.value);
      }
      for (Access::Indirect& indirect : access.indirect)
        indirect.stride = size(indirect.stride.value);
    });
    for (Expr& expr : draft_.exprs)
      if (expr.op == Op::kInteger && std::abs(expr.value.value) > 1)
        expr.value = slot(expr.value.value);
    kernel.buffers = std::move(draft_.buffers);
    kernel.exprs = std::move(draft_.exprs);
    kernel.stores = std::move(draft_.stores);
    kernel.size_slots = uint32_t(lowered_.sizes.size());
    kernel.number_slots = uint32_t(draft_.numbers.size());
    lowered_.buffers = std::move(draft_.bindings);
    lowered_.numbers = std::move(draft_.numbers);
    if (context_.is_cuda()) {
      kernel.thread_loop = choose_thread_loop(kernel, lowered_.sizes, context_.shared_bytes);
      if (kernel.thread_loop.transposed >= 0)
        lowered_.work_items = transposed_work_items(kernel, lowered_.sizes);
    } else if (lowered_.work_items > 0) {
      kernel.jam = choose_jam(kernel, lowered_.sizes, context_.lanes, most_jammed());
      jam_work_items();
      kernel.pairs = goes_by_pairs(kernel, lowered_.sizes, context_.lanes);
    }
    return std::move(lowered_);
  }

 private:
  Lanes lanes_of_target() {
    if (reduction_total_ > 0) return {lanes_of_chunks_};
    return context_.is_cuda() ? usual_lanes(draft_) : choose_lanes(draft_, context_.lanes);
  }

  Size slot(int64_t value) {
    const auto [found, made] = slots_.emplace(value, uint32_t(lowered_.sizes.size()));
    if (made) lowered_.sizes.push_back(value);
    return Size::of_slot(found->second);
  }

  // Strides and offsets of 0 and 1 are what code is specialised on.
  Size size(int64_t value) {
    return value == 0 || value == 1 ? Size::constant(value) : slot(value);
  }

  // On a GPU threads share a sum, how many is not known yet.
  bool has_short_sums(size_t parallel) const {
    if (context_.is_cuda() || std::ranges::none_of(draft_.exprs, is_floating_sum)) return false;
    int64_t steps = 1;
    for (size_t axis = parallel; axis < draft_.extents.size(); ++axis)
      steps *= draft_.extents[axis];
    if (lowered_.kernel.axis == Axis::kReduction) {
      const int64_t last = draft_.extents.back();
      steps = last == 0 ? 0 : steps / last * divided_up(last, context_.lanes);
    }
    return steps <= kBlockSteps;
  }

  void choose_work_items(size_t parallel) {
    Kernel& kernel = lowered_.kernel;
    const c10::ArrayRef<int64_t> extents(draft_.extents);
    double per_element = 0;  // in simple operations, of which a vector does 16 at once
    for (const Expr& expr : draft_.exprs) per_element += cost_of(expr) / 4.0;
    per_element = std::max(per_element, 1.0);
    const double inner = double(c10::multiply_integers(extents.slice(parallel)));
    if (kernel.axis == Axis::kReduction) {
      lowered_.work_items = c10::multiply_integers(extents.slice(0, parallel));
      lowered_.work_item_cost = per_element * inner;
      return;
    }
    if (parallel == 0) {  // a single point
      lowered_.work_items = 1;
      lowered_.work_item_cost = per_element;
      return;
    }
    const int64_t last = extents[parallel - 1];
    int64_t block = std::min(last, context_.is_cuda() ? kLongestCudaBlock : kLongestBlock);
    if (parallel < extents.size() && context_.is_cuda()) {
      block = std::min<int64_t>(block, ThreadLoop::kColumns);
    } else if (parallel < extents.size()) {
      // Blocks are all the parallelism that a column reduction may have.
      const int64_t share = divided_up(last, int64_t{2} * context_.threads);
      // Whole tiles of the most vectors that a printer takes, where that leaves the shares alike.
      const bool wide = context_.lanes == 16 && share >= 256;
      const int64_t tile = int64_t{wide ? 8 : 4} * context_.lanes;
      block = std::min(block, std::max(tile, divided_up(share, tile) * tile));
    }
    kernel.block = slot(block);
    lowered_.work_items =
        c10::multiply_integers(extents.slice(0, parallel - 1)) * divided_up(last, block);
    lowered_.work_item_cost = per_element * inner * double(block);
  }

  // Steps that leave work items for all threads, where there is work for them.
  int64_t most_jammed() const {
    const bool is_short = double(lowered_.work_items) * lowered_.work_item_cost < kWorkOfThreads;
    if (context_.threads == 1 || is_short) return INT64_MAX;
    return lowered_.work_items / (int64_t{2} * context_.threads);
  }

  // What jammed steps share makes up for what they add to a work item; squares share nothing.
  void jam_work_items() {
    Kernel& kernel = lowered_.kernel;
    const Jam& jam = kernel.jam;
    if (jam.steps == 1) return;
    const int64_t extent = lowered_.number(kernel.parallel[size_t(jam.dimension)]);
    lowered_.work_items = lowered_.work_items / extent * divided_up(extent, jam.steps);
    if (!kernel.reduction.empty()) return;
    const int64_t last = lowered_.number(kernel.parallel.back());
    const int64_t longer = lowered_.number(kernel.block), block = std::min(longer, kBlockOfSquares);
    lowered_.work_items = lowered_.work_items / divided_up(last, longer) * divided_up(last, block);
    lowered_.work_item_cost *= double(jam.steps) * double(block) / double(longer);
    kernel.block = slot(block);
    kernel.size_slots = uint32_t(lowered_.sizes.size());
  }

  Draft draft_;
  const LowerContext& context_;
  const int64_t reduction_total_;
  const Axis lanes_of_chunks_;
  LoweredKernel lowered_;
  std::unordered_map<int64_t, uint32_t> slots_;
};

}  // namespace

std::vector<LoweredKernel> choose_loops(Draft draft, const LowerContext& context) {
  order_and_merge_axes(draft);
  std::vector<LoweredKernel> kernels;
  const Axis lanes = context.is_cuda() ? usual_lanes(draft).axis : Axis::kReduction;
  Draft ordered = draft;
  if (context.is_cuda()) put_longest_outermost(ordered);
  const std::optional<Chunks> chunks = chunks_of_long_reduction(ordered, lanes, context.is_cuda());
  if (!chunks) {
    kernels.push_back(Finisher(std::move(draft), context).finish());
    return kernels;
  }
  CutReduction cut = cut_reduction(std::move(ordered), lanes, *chunks);
  kernels.push_back(Finisher(std::move(cut.chunks), context, cut.total, cut.lanes).finish());
  kernels.push_back(Finisher(std::move(cut.combination), context).finish());
  for (LoweredKernel& kernel : kernels) kernel.partial_elements = cut.partial_elements;
  return kernels;
}

}  // namespace torch_lazy::codegen
