#include "codegen/choose_lanes.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "codegen/draft_axes.h"
#include "codegen/loop_analysis.h"
#include "codegen/op_cost.h"

namespace torch_lazy::codegen {
namespace {

// In the units of cost_of, which are vector instructions: the divisions that make a work item's
// indices, and the begin and end of its loops; what a reduction over the lanes does behind them.
constexpr double kWorkItemCost = 16;
constexpr double kOverLanesCost = 12;
// Of each lane that is read or written by itself.
constexpr double kLaneAccessCost = 4;
// An estimate that is nearer than this to the usual choice's does not overrule it.
constexpr double kWorthChoosing = 0.8;

// Lanes along `lanes`; the axes of `inside` are stepped through within a work item.
struct Choice {
  size_t lanes;
  AxisSet inside;
};

AxisSet bit(size_t axis) {
  return AxisSet(1) << axis;
}

class Estimate {
 public:
  Estimate(const Draft& draft, int lanes)
      : draft_(draft), lanes_(lanes), varying_(varying_axes(draft)) {}

  double cost(const Choice& choice) const {
    const bool along_reduction = draft_.reduced[choice.lanes];
    double items = 1;
    for (size_t axis = 0; axis < draft_.extents.size(); ++axis)
      if (axis != choice.lanes && !(choice.inside & bit(axis))) items *= extent(axis);
    double cost = items * kWorkItemCost;
    for (size_t i = 0; i < draft_.exprs.size(); ++i) {
      const Expr& expr = draft_.exprs[i];
      if (along_reduction && is_reduction(expr.op)) cost += items * kOverLanesCost;
      const AxisSet varying =
          is_reduction(expr.op) ? varying_[size_t(expr.arguments[0])] : varying_[i];
      double once = cost_of(expr);
      if (expr.op == Op::kLoad) once += cost_of_strides(expr.access, choice);
      cost += once * evaluations(varying, choice, items);
    }
    for (const Store& store : draft_.stores)
      cost +=
          (1 + cost_of_strides(store.access, choice)) * evaluations(axes_of(store), choice, items);
    return cost;
  }

 private:
  double extent(size_t axis) const { return double(draft_.extents[axis]); }

  AxisSet axes_of(const Store& store) const {
    AxisSet axes = varying_[size_t(store.expr)];
    for (size_t axis = 0; axis < store.access.strides.size(); ++axis)
      if (store.access.strides[axis].value != 0) axes |= bit(axis);
    return axes;
  }

  double evaluations(AxisSet varying, const Choice& choice, double items) const {
    if (varying == 0) return 1;
    double times = items;
    const bool in_loop = (varying & (choice.inside | bit(choice.lanes))) != 0;
    if (in_loop) times *= double((draft_.extents[choice.lanes] + lanes_ - 1) / lanes_);
    for (size_t axis = 0; axis < draft_.extents.size(); ++axis)
      if (axis != choice.lanes && (varying & choice.inside & bit(axis))) times *= extent(axis);
    return times;
  }

  // Of a vector's load or store beyond that of a whole one.
  double cost_of_strides(const Access& access, const Choice& choice) const {
    const int64_t stride =
        choice.lanes < access.strides.size() ? access.strides[choice.lanes].value : 0;
    if (stride == 0 || stride == 1) return 0;
    return stride <= kWidestTile ? double(stride) : kLaneAccessCost * lanes_;
  }

  const Draft& draft_;
  const int lanes_;
  const std::vector<AxisSet> varying_;
};

AxisSet reduced_axes(const Draft& draft) {
  AxisSet reduced = 0;
  for (size_t axis = 0; axis < draft.reduced.size(); ++axis)
    if (draft.reduced[axis]) reduced |= bit(axis);
  return reduced;
}

// Where most of the memory is read and written in a row.
Choice usual_choice(const Draft& draft) {
  const size_t parallel = parallel_count(draft), axes = draft.extents.size();
  const AxisSet reduced = reduced_axes(draft);
  if (parallel == axes) return {parallel - 1, reduced};
  if (parallel == 0) return {axes - 1, reduced};
  double along_parallel = 0, along_reduction = 0;
  for_each_access(draft, [&](const Access& access, Type type) {
    double touched = double(bytes_of(type));
    for (size_t i = 0; i < axes; ++i)
      if (access.strides[i].value != 0) touched *= double(draft.extents[i]);
    if (access.strides[parallel - 1].value == 1) along_parallel += touched;
    if (access.strides[axes - 1].value == 1) along_reduction += touched;
  });
  return {along_parallel > along_reduction ? parallel - 1 : axes - 1, reduced};
}

// Lanes along another of the axes that are reduced than the innermost. The index that an arg
// reduction gives counts the axes in their order.
std::vector<Choice> choices_of_reduced_axes(const Draft& draft) {
  std::vector<Choice> choices;
  for (const Expr& expr : draft.exprs)
    if (expr.op == Op::kReduceArgMax || expr.op == Op::kReduceArgMin) return choices;
  const AxisSet reduced = reduced_axes(draft);
  for (size_t axis = parallel_count(draft); axis + 1 < draft.extents.size(); ++axis)
    choices.push_back({axis, reduced & ~bit(axis)});
  return choices;
}

// The choices that leave short axes to the steps of a work item.
std::vector<Choice> unrolled_choices(const Draft& draft) {
  std::vector<Choice> choices;
  const size_t parallel = parallel_count(draft);
  AxisSet inside = reduced_axes(draft);
  int64_t steps = 1;
  for (size_t axis = parallel; axis < draft.extents.size(); ++axis) steps *= draft.extents[axis];
  const bool reduces = inside != 0;
  for (size_t axis = parallel; axis-- > 0 && steps <= kMostUnrolledSteps;) {
    if (inside != 0) choices.push_back({axis, inside});
    if (reduces) continue;
    inside |= bit(axis);
    steps *= draft.extents[axis];
  }
  return choices;
}

// Puts the axes where a kernel has them for this choice.
Lanes arrange(Draft& draft, const Choice& choice) {
  const bool along_reduction = draft.reduced[choice.lanes];
  std::vector<size_t> outside, inside;
  for (size_t axis = 0; axis < draft.extents.size(); ++axis)
    if (axis != choice.lanes) (choice.inside & bit(axis) ? inside : outside).push_back(axis);
  std::vector<size_t> order = outside;
  if (!along_reduction) order.push_back(choice.lanes);
  order.insert(order.end(), inside.begin(), inside.end());
  if (along_reduction) order.push_back(choice.lanes);
  for (const size_t axis : inside) draft.reduced[axis] = true;
  permute_axes(draft, order);
  if (along_reduction) return {Axis::kReduction};
  return {Axis::kParallel, true};
}

}  // namespace

Lanes choose_lanes(Draft& draft, int lanes) {
  if (draft.extents.empty()) return {Axis::kParallel};
  const Estimate estimate(draft, lanes);
  Choice best = usual_choice(draft);
  const bool along_reduction = draft.reduced[best.lanes];
  bool changed = false;
  double least = kWorthChoosing * estimate.cost(best);
  std::vector<Choice> others = unrolled_choices(draft);
  for (const Choice& choice : choices_of_reduced_axes(draft)) others.push_back(choice);
  for (const Choice& choice : others) {
    const double cost = estimate.cost(choice);
    if (cost >= least) continue;
    best = choice;
    least = cost;
    changed = true;
  }
  if (!changed) return {along_reduction ? Axis::kReduction : Axis::kParallel};
  return arrange(draft, best);
}

}  // namespace torch_lazy::codegen
