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
// Where there is much to do a GPU wants more work items than fill it, so that those who end early
// find another.
constexpr int64_t kCudaWorkItems = 2048;
// A chunk of columns, a warp of them, is worth a work item with so many steps. One of rows is where
// each of its threads has so many, or moves so many bytes.
constexpr int64_t kLeastCudaColumnSteps = 64;
constexpr int64_t kStepsOfRowThread = 8;
constexpr int64_t kBytesOfRowThread = 64;
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

// Of each store whether every step of the reduction stores, if only the same number again.
std::vector<bool> stores_of_steps(const Draft& draft) {
  const std::vector<AxisSet> varying = varying_axes(draft);
  const AxisSet reduced = reduced_axes(draft);
  std::vector<bool> of_steps;
  for (const Store& store : draft.stores) {
    const AxisSet axes = varying[size_t(store.expr)] | axes_of(store.access, varying);
    of_steps.push_back((axes & reduced) != 0);
  }
  return of_steps;
}

// Whether what is stored, or where, needs a reduction's result.
bool follows(const Store& store, const std::vector<bool>& after) {
  return after[size_t(store.expr)] ||
         std::ranges::any_of(store.access.indirect, [&](const Access::Indirect& indirect) {
           return after[size_t(indirect.index)];
         });
}

class Cutter {
 public:
  Cutter(Draft draft, Axis lanes, const Chunks& chunks)
      : draft_(std::move(draft)),
        parallel_(parallel_count(draft_)),
        chunks_(chunks),
        first_(lanes == Axis::kParallel ? parallel_ - 1 : parallel_),
        count_(size_t(chunks.by_outermost) + size_t(chunks.steps > 0)),
        of_steps_(stores_of_steps(draft_)),
        in_combination_(draft_.exprs.size(), kNoId) {
    cut_.lanes = lanes;
  }

  CutReduction run() {
    if (chunks_.by_outermost) count_outermost();
    if (chunks_.steps > 0) divide_outermost();
    cut_.chunks = draft_;
    cut_.chunks.stores.clear();
    Draft& combination = cut_.combination;
    combination.extents = without_chunks(draft_.extents);
    points_ = c10::multiply_integers(combination.extents);
    cut_.partial_elements =
        c10::multiply_integers(c10::ArrayRef<int64_t>(draft_.extents).slice(0, parallel_ + count_));
    combination.extents.push_back(cut_.partial_elements / points_);
    combination.reduced.assign(parallel_, false);
    combination.reduced.push_back(true);
    combination.numbers = draft_.numbers;
    for (size_t i = 0; i < draft_.stores.size(); ++i) {
      if (of_steps_[i])
        cut_.chunks.stores.push_back(draft_.stores[i]);
      else
        store_in_combination(draft_.stores[i]);
    }
    return std::move(cut_);
  }

 private:
  // Chunks are counted by axes [first_, first_ + count_) of the chunks' draft: behind the parallel
  // axes, or before that of the lanes.
  bool counts_chunks(size_t axis) const { return axis >= first_ && axis < first_ + count_; }

  // Of what there is for each parallel axis of the chunks' draft.
  template <class Values>
  Values without_chunks(const Values& of_axes) const {
    Values rest;
    for (size_t axis = 0; axis < parallel_ + count_; ++axis)
      if (!counts_chunks(axis)) rest.push_back(of_axes[axis]);
    return rest;
  }

  // The outermost axis that is reduced counts them.
  void count_outermost() {
    draft_.reduced[parallel_] = false;
    std::vector<size_t> order(draft_.extents.size());
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[first_], order[parallel_]);
    permute_axes(draft_, order);
  }

  // A new axis counts them.
  void divide_outermost() {
    const size_t at = first_ + count_ - 1, divided = parallel_ + count_ - 1;
    cut_.total = draft_.extents[divided];
    draft_.extents[divided] = chunks_.steps;
    const auto insert = [&](auto& of_axes, auto value) {
      of_axes.insert(of_axes.begin() + long(at), value);
    };
    insert(draft_.extents, divided_up(cut_.total, chunks_.steps));
    insert(draft_.reduced, false);
    for_each_access(draft_,
                    [&](Access& access, Type) { insert(access.strides, Size::constant(0)); });
    for (Expr& expr : draft_.exprs)  // the index of a chunk's element is that of the whole
      if (expr.op == Op::kIndex && expr.dimension >= at) ++expr.dimension;
  }

  // The combination has the parallel axes, and that of the chunks as the one that it reduces.
  Access without_reduced(const Access& access) const {
    Access result = access;
    result.strides = without_chunks(access.strides);
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
      if (expr.op == Op::kIndex && expr.dimension > first_) expr.dimension -= count_;
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
    for (const bool of_chunks : {false, true}) {  // the points of a chunk lie side by side
      for (size_t axis = parallel_ + count_; axis-- > 0;) {
        if (counts_chunks(axis) != of_chunks) continue;
        store.access.strides[axis] = Size::constant(stride);
        stride *= draft_.extents[axis];
      }
    }
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
  const size_t parallel_;  // axes that the draft has before it is cut
  const Chunks chunks_;
  const size_t first_, count_;          // of the axes that count chunks
  int64_t points_ = 1;                  // of the parallel axes
  const std::vector<bool> of_steps_;    // by store: before the draft's axes are others
  std::vector<ExprId> in_combination_;  // by expression of the draft
  CutReduction cut_;
};

// Whether the results of chunks can be combined, and nothing that varies or is stored along the
// chunks needs them.
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
  const std::vector<bool> of_steps = stores_of_steps(draft);
  for (size_t i = 0; i < draft.stores.size(); ++i)
    if (of_steps[i] && follows(draft.stores[i], after)) return false;
  return reduces;
}

// That a step of the reduction loads and stores, at most: what varies along the outer axes alone
// counts in full.
int64_t bytes_of_step(const Draft& draft) {
  int64_t bytes = 0;
  for_each_access(draft, [&](const Access& access, Type type) {
    const auto reduced = c10::ArrayRef<Size>(access.strides).slice(parallel_count(draft));
    const bool varies = std::ranges::any_of(reduced, [](Size stride) { return !stride.is(0); });
    if (varies || !access.indirect.empty()) bytes += bytes_of(type);
  });
  return std::max<int64_t>(bytes, 1);
}

// Steps that are worth a chunk whose threads share a row.
int64_t least_row_steps(const Draft& draft) {
  const bool nested =
      draft.extents.size() > parallel_count(draft) + 1 && draft.extents.back() >= kLeastNested;
  const int64_t threads =
      nested ? threads_of_long_row(draft.extents.back()) : ThreadLoop::kMostThreads;
  return threads *
         std::clamp<int64_t>(kBytesOfRowThread / bytes_of_step(draft), 1, kStepsOfRowThread);
}

// So many chunks of the axis, or fewer.
Chunks divided(const Draft& draft, size_t axis, int64_t chunks) {
  const int64_t multiple = axis + 1 == draft.extents.size() ? kChunkMultiple : 1;
  const int64_t steps = divided_up(divided_up(draft.extents[axis], chunks), multiple) * multiple;
  return {.steps = steps};
}

}  // namespace

std::optional<Chunks> chunks_of_long_reduction(const Draft& draft, Axis lanes, bool for_cuda) {
  const size_t parallel = parallel_count(draft);
  if (parallel == draft.extents.size() || has_scans(draft.exprs) || !can_be_cut(draft)) return {};
  const c10::ArrayRef<int64_t> extents(draft.extents);
  const int64_t steps = c10::multiply_integers(extents.slice(parallel));
  const bool several = extents.size() > parallel + 1;
  if (!for_cuda) {
    if (parallel != 0 || steps < kLongReduction) return {};
    return several ? Chunks{.by_outermost = true} : Chunks{.steps = kChunk};
  }
  int64_t items = c10::multiply_integers(extents.slice(0, parallel));
  if (items == 0) return {};
  if (lanes == Axis::kParallel)
    items = items / extents[parallel - 1] * divided_up(extents[parallel - 1], ThreadLoop::kColumns);
  int64_t least = 0;
  if (lanes == Axis::kParallel) {
    // Of fewer columns a block's threads go through more steps at a time.
    const int few = threads_of_few(extents[parallel - 1]);
    least = kLeastCudaColumnSteps * (few > 0 ? ThreadLoop::kColumns / few : 1);
  } else {
    least = least_row_steps(draft);
  }
  const int64_t wanted = std::min(kCudaWorkItems / items, steps / least);
  if (wanted < 2 || items > kMostItemsToCut) return {};
  const int64_t outermost = extents[parallel];
  if (several && lanes == Axis::kReduction && wanted >= 2 * outermost) {
    Chunks chunks = divided(draft, parallel + 1, wanted / outermost);
    chunks.by_outermost = true;
    return chunks;
  }
  const int64_t chunks = std::min(wanted, outermost);
  if (chunks < 2) return {};
  const Chunks cut = divided(draft, parallel, chunks);
  return several && cut.steps == 1 ? Chunks{.by_outermost = true} : cut;
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

CutReduction cut_reduction(Draft draft, Axis lanes, const Chunks& chunks) {
  return Cutter(std::move(draft), lanes, chunks).run();
}

}  // namespace torch_lazy::codegen
