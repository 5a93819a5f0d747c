#include "codegen/cut_reduction.h"

#include <c10/util/accumulate.h>

#include <utility>
#include <vector>

#include "codegen/draft_axes.h"

namespace torch_lazy::codegen {
namespace {

// Elements of one chunk of a long reduction: long enough that its start-up is nothing, short enough
// that a float sum loses nothing.
constexpr int64_t kChunk = 16384;
// Reductions shorter than this are one work item.
constexpr int64_t kLongReduction = 4 * kChunk;

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

Access single_point(Access access) {
  access.strides.assign(1, Size::constant(0));
  return access;
}

class Cutter {
 public:
  explicit Cutter(Draft draft)
      : draft_(std::move(draft)),
        after_(after_reduction(draft_)),
        varying_(varying_axes(draft_)),
        in_combination_(draft_.exprs.size(), kNoId) {}

  CutReduction run() {
    divide_into_chunks();
    cut_.chunks = draft_;
    cut_.chunks.stores.clear();
    cut_.combination.extents = {cut_.partial_elements};
    cut_.combination.reduced = {true};
    cut_.combination.numbers = draft_.numbers;
    for (const Store& store : draft_.stores) {
      if (!after_[size_t(store.expr)] && varying_[size_t(store.expr)] != 0)
        cut_.chunks.stores.push_back(store);
      else
        store_in_combination(store);
    }
    return std::move(cut_);
  }

 private:
  void divide_into_chunks() {
    if (draft_.extents.size() > 1) {
      cut_.partial_elements = draft_.extents[0];
      draft_.reduced[0] = false;
      return;
    }
    cut_.total = draft_.extents[0];
    cut_.partial_elements = (cut_.total + kChunk - 1) / kChunk;
    draft_.extents = {cut_.partial_elements, kChunk};
    draft_.reduced = {false, true};
    for_each_access(draft_, [](Access& access, Type) {
      access.strides.insert(access.strides.begin(), Size::constant(0));
    });
    for (Expr& expr : draft_.exprs)  // the index of a chunk's element is that of the whole
      if (expr.op == Op::kIndex) expr.dimension = 1;
  }

  void store_in_combination(const Store& store) {
    Store copy = store;
    copy.expr = in_combination(store.expr);
    copy.buffer = buffer_in_combination(store.buffer);
    copy.access = single_point(store.access);
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
        expr.access = single_point(expr.access);
      }
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
    store.access.strides[0] = Size::constant(1);
    store.expr = reduction;
    cut_.chunks.stores.push_back(store);
    cut_.chunks.buffers.push_back(partial);
    cut_.chunks.bindings.push_back(binding);
    partial.written = binding.written = false;
    Expr load;
    load.op = Op::kLoad;
    load.type = type;
    load.buffer = uint32_t(cut_.combination.buffers.size());
    load.access.strides = {Size::constant(1)};
    cut_.combination.buffers.push_back(partial);
    cut_.combination.bindings.push_back(binding);
    cut_.combination.exprs.push_back(std::move(load));
    return ExprId(cut_.combination.exprs.size()) - 1;
  }

  Draft draft_;
  const std::vector<bool> after_;
  const std::vector<AxisSet> varying_;
  std::vector<ExprId> in_combination_;  // by expression of the draft
  CutReduction cut_;
};

}  // namespace

bool is_long_reduction(const Draft& draft) {
  if (parallel_count(draft) != 0 || draft.extents.empty()) return false;
  if (c10::multiply_integers(draft.extents) < kLongReduction) return false;
  const std::vector<AxisSet> varying = varying_axes(draft);
  const std::vector<bool> after = after_reduction(draft);
  for (size_t i = 0; i < draft.exprs.size(); ++i) {
    if (is_reduction(draft.exprs[i].op) &&
        (!can_be_combined(draft.exprs[i].op) || varying[size_t(draft.exprs[i].arguments[0])] == 0))
      return false;
    if (after[i] && varying[i] != 0) return false;
  }
  return true;
}

CutReduction cut_reduction(Draft draft) {
  return Cutter(std::move(draft)).run();
}

}  // namespace torch_lazy::codegen
