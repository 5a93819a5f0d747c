#include "codegen/cut_reduction.h"

#include <c10/util/accumulate.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "codegen/divide.h"
#include "codegen/draft_axes.h"
#include "codegen/thread_loop.h"

namespace torch_lazy::codegen {
namespace {

// Elements of one chunk of a CPU's long reduction: long enough that its start-up is nothing, short
// enough that a float sum loses nothing.
constexpr int64_t kChunk = 16384;
// Reductions shorter than this are one work item.
constexpr int64_t kLongReduction = 4 * kChunk;
// A GPU with fewer work items idles; where there is much to do it wants more of them, so that
// those who end early find another. A chunk of fewer steps is not worth one; those of columns are
// of a whole warp of them.
constexpr int64_t kLeastCudaWorkItems = 256;
constexpr int64_t kCudaWorkItems = 2048;
constexpr int64_t kLeastCudaRowSteps = 8192;
constexpr int64_t kLeastCudaColumnSteps = 64;
// Chunks begin where packets do if the whole does.
constexpr int64_t kChunkMultiple = 64;

bool can_be_combined(Op op) {
  switch (op) {
    case Op::kReduceSum:
    case Op::kReduceProd:
    case Op::kReduceMin:
    case Op::kReduceMax:
    case Op::kReduceAnd:
    case Op::kReduceOr:
      return true;
    default:
      return false;
  }
}

class Cutter {
 public:
  Cutter(Draft draft, Axis lanes, int64_t chunk)
      : draft_(std::move(draft)),
        parallel_(parallel_count(draft_)),
        chunk_axis_(lanes == Axis::kParallel ? parallel_ - 1 : parallel_),
        chunk_(chunk),
        after_(after_reduction(draft_)),
        varying_(varying_axes(draft_)),
        reduced_(reduced_axes(draft_)),
        in_combination_(draft_.exprs.size(), kNoId) {
    cut_.lanes = lanes;
  }

  CutReduction run() {
    divide_into_chunks();
    cut_.chunks = draft_;
    cut_.chunks.stores.clear();
    Draft& combination = cut_.combination;
    for (size_t axis = 0; axis <= parallel_; ++axis)
      if (axis != chunk_axis_) combination.extents.push_back(draft_.extents[axis]);
    points_ = c10::multiply_integers(combination.extents);
    cut_.partial_elements = points_ * draft_.extents[chunk_axis_];
    combination.extents.push_back(draft_.extents[chunk_axis_]);
    combination.reduced.assign(parallel_, false);
    combination.reduced.push_back(true);
    combination.numbers = draft_.numbers;
    for (const Store& store : draft_.stores) {
      if (!after_[size_t(store.expr)] && (varying_[size_t(store.expr)] & reduced_) != 0)
        cut_.chunks.stores.push_back(store);
      else
        store_in_combination(store);
    }
    return std::move(cut_);
  }

 private:
  // Behind the parallel axes, or before that of the lanes, comes one that counts chunks.
  void divide_into_chunks() {
    if (chunk_ == 1) {  // the outermost axis that is reduced counts them
      draft_.reduced[parallel_] = false;
      std::vector<size_t> order(draft_.extents.size());
      std::iota(order.begin(), order.end(), 0);
      std::swap(order[chunk_axis_], order[parallel_]);
      permute_axes(draft_, order);
      return;
    }
    cut_.total = draft_.extents[parallel_];
    draft_.extents[parallel_] = chunk_;
    const auto at = [&](auto& axes) { return axes.begin() + long(chunk_axis_); };
    draft_.extents.insert(at(draft_.extents), divided_up(cut_.total, chunk_));
    draft_.reduced.insert(at(draft_.reduced), false);
    for_each_access(draft_, [&](Access& access, Type) {
      access.strides.insert(at(access.strides), Size::constant(0));
    });
    for (Expr& expr : draft_.exprs)  // the index of a chunk's element is that of the whole
      if (expr.op == Op::kIndex && expr.dimension >= chunk_axis_) ++expr.dimension;
  }

  // The combination has the parallel axes, and that of the chunks as the one that it reduces.
  Access without_reduced(const Access& access) const {
    Access result = access;
    result.strides.clear();
    for (size_t axis = 0; axis <= parallel_; ++axis)
      if (axis != chunk_axis_) result.strides.push_back(access.strides[axis]);
    result.strides.push_back(Size::constant(0));
    return result;
  }

  void store_in_combination(const Store& store) {
    Store copy = store;
    copy.expr = in_combination(store.expr);
    copy.buffer = buffer_in_combination(store.buffer);
    copy.access = without_reduced(store.access);
    cut_.combination.stores.push_back(copy);
  }

  uint32_t buffer_in_combination(uint32_t buffer) {
    cut_.combination.buffers.push_back(draft_.buffers[buffer]);
    cut_.combination.bindings.push_back(draft_.bindings[buffer]);
    return uint32_t(cut_.combination.buffers.size() - 1);
  }

  // What follows the reduction, with all that it needs.
  // NOLINTNEXTLINE(misc-no-recursion): as deep as the expression.
  ExprId in_combination(ExprId id) {
    ExprId& known = in_combination_[size_t(id)];
    if (known != kNoId) return known;
    Expr expr = draft_.exprs[size_t(id)];
    if (is_reduction(expr.op)) {
      expr.arguments = {pass_partial_results(id)};
    } else {
      for (ExprId& argument : expr.arguments) argument = in_combination(argument);
      if (expr.op == Op::kLoad) {
        for (Access::Indirect& indirect : expr.access.indirect)
          indirect.index = in_combination(indirect.index);
        expr.buffer = buffer_in_combination(expr.buffer);
        expr.access = without_reduced(expr.access);
        if (expr.predicate != kNoPredicate) expr.predicate = in_combination(expr.predicate);
      }
      if (expr.op == Op::kIndex && expr.dimension > chunk_axis_) --expr.dimension;
    }
    cut_.combination.exprs.push_back(std::move(expr));
    return known = ExprId(cut_.combination.exprs.size()) - 1;
  }

  // Stores the reduction's results of chunks in the first kernel; returns their load in the second.
  ExprId pass_partial_results(ExprId reduction) {
    const Type type = draft_.exprs[size_t(reduction)].type;
    Buffer partial{type, "partial" + std::to_string(reduction), true, true};
    BufferBinding binding{BufferBinding::kPartial - reduction, true};
    Store store;
    store.buffer = uint32_t(cut_.chunks.buffers.size());
    store.access.strides.assign(cut_.chunks.extents.size(), Size::constant(0));
    int64_t stride = 1;
    for (size_t axis = parallel_ + 1; axis-- > 0;) {
      if (axis == chunk_axis_) continue;
      store.access.strides[axis] = Size::constant(stride);
      stride *= draft_.extents[axis];
    }
    store.access.strides[chunk_axis_] = Size::constant(points_);
    store.expr = reduction;
    cut_.chunks.stores.push_back(store);
    cut_.chunks.buffers.push_back(partial);
    cut_.chunks.bindings.push_back(binding);
    partial.written = binding.written = false;
    Expr load;
    load.op = Op::kLoad;
    load.type = type;
    load.buffer = uint32_t(cut_.combination.buffers.size());
    load.access = without_reduced(store.access);
    load.access.strides.back() = Size::constant(points_);
    cut_.combination.buffers.push_back(partial);
    cut_.combination.bindings.push_back(binding);
    cut_.combination.exprs.push_back(std::move(load));
    return ExprId(cut_.combination.exprs.size()) - 1;
  }

  Draft draft_;
  const size_t parallel_;    // axes that the draft has before it is cut
  const size_t chunk_axis_;  // in the chunks
  const int64_t chunk_;      // steps of the outermost axis that is reduced
  int64_t points_ = 1;       // of the parallel axes
  const std::vector<bool> after_;
  const std::vector<AxisSet> varying_;
  const AxisSet reduced_;
  std::vector<ExprId> in_combination_;  // by expression of the draft
  CutReduction cut_;
};

// Whether the results of chunks can be combined, and nothing that varies along the chunks needs
// them.
bool can_be_cut(const Draft& draft) {
  const std::vector<AxisSet> varying = varying_axes(draft);
  const std::vector<bool> after = after_reduction(draft);
  const AxisSet reduced = reduced_axes(draft);
  bool reduces = false;
  for (size_t i = 0; i < draft.exprs.size(); ++i) {
    const Expr& expr = draft.exprs[i];
    if (after[i] && (varying[i] & reduced) != 0) return false;
    if (!is_reduction(expr.op)) continue;
    if (!can_be_combined(expr.op) || (varying[size_t(expr.arguments[0])] & reduced) == 0)
      return false;
    reduces = true;
  }
  return reduces;
}

}  // namespace

std::optional<int64_t> chunk_of_long_reduction(const Draft& draft, Axis lanes, bool for_cuda) {
  const size_t parallel = parallel_count(draft);
  if (parallel == draft.extents.size() || !can_be_cut(draft)) return {};
  const c10::ArrayRef<int64_t> extents(draft.extents);
  const int64_t steps = c10::multiply_integers(extents.slice(parallel));
  const bool several = extents.size() > parallel + 1;
  if (!for_cuda) {
    if (parallel != 0 || steps < kLongReduction) return {};
    return several ? 1 : kChunk;
  }
  int64_t items = c10::multiply_integers(extents.slice(0, parallel));
  if (items == 0) return {};
  if (lanes == Axis::kParallel)
    items = items / extents[parallel - 1] * divided_up(extents[parallel - 1], ThreadLoop::kColumns);
  int64_t least = kLeastCudaRowSteps;
  if (lanes == Axis::kParallel) {
    // Of fewer columns a block's threads go through more steps at a time.
    const int few = threads_of_few(extents[parallel - 1]);
    least = kLeastCudaColumnSteps * (few > 0 ? ThreadLoop::kColumns / few : 1);
  }
  const int64_t outermost = extents[parallel];
  const int64_t chunks = std::min({kCudaWorkItems / items, steps / least, outermost});
  if (chunks < 2 || items > kLeastCudaWorkItems) return {};
  const int64_t multiple = several ? 1 : kChunkMultiple;
  return divided_up(divided_up(outermost, chunks), multiple) * multiple;
}

void put_longest_outermost(Draft& draft) {
  const size_t first = parallel_count(draft), end = draft.extents.size();
  size_t longest = first;
  for (size_t axis = first + 1; axis + 1 < end; ++axis)
    if (draft.extents[axis] > draft.extents[longest]) longest = axis;
  if (longest == first) return;
  std::vector<size_t> order(end);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[first], order[longest]);
  permute_axes(draft, order);
}

CutReduction cut_reduction(Draft draft, Axis lanes, int64_t chunk) {
  return Cutter(std::move(draft), lanes, chunk).run();
}

}  // namespace torch_lazy::codegen
