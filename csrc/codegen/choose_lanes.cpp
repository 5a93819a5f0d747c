#include "codegen/choose_lanes.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "codegen/divide.h"
#include "codegen/draft_axes.h"
#include "codegen/loop_analysis.h"
#include "codegen/op_cost.h"

namespace torch_lazy::codegen {
namespace {

// In the units of cost_of, which are vector instructions: the begin and end of a work item's loops;
// what a reduction over the lanes does behind them.
constexpr double kWorkItemCost = 16;
constexpr double kOverLanesCost = 12;
// Of each lane that is read or written by itself.
constexpr double kLaneAccessCost = 4;
// Of a vector that is turned around.
constexpr double kReversedCost = 1;
// A step of a reduction that has one accumulator: it waits for the step before.
constexpr double kChainedStepCost = 2;
// Memory that stays in a core's own cache from one work item to the next.
constexpr double kNearBytes = 512 * 1024;
// Steps are written out one after the other: so much of what they do in all, which bounds the code.
constexpr double kMostUnrolledCost = 1024;
// An estimate that is nearer than this to the usual choice's does not overrule it.
constexpr double kWorthChoosing = 0.8;

// Lanes along `lanes`; the axes of `inside` are stepped through within a work item.
struct Choice {
  size_t lanes;
  AxisSet inside;
  bool written_out = false;  // the steps, one after the other
};

AxisSet bit(size_t axis) {
  return AxisSet(1) << axis;
}

class Estimate {
 public:
  Estimate(const Draft& draft, int lanes)
      : draft_(draft), lanes_(lanes), varying_(varying_axes(draft)) {}

  // Of a step of a work item, without what it reads and writes.
  double cost_of_body() const {
    double cost = 0;
    for (const Expr& expr : draft_.exprs) cost += is_reduction(expr.op) ? 1 : cost_of(expr);
    return cost;
  }

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
      const bool one_step = is_reduction(expr.op) || (is_scan(expr.op) && !along_reduction);
      double once = one_step ? cost_of_step(choice) : cost_of(expr);
      if (expr.op == Op::kLoad) once += cost_of_strides(expr.access, expr.type, choice);
      cost += once * evaluations(varying, choice, items);
    }
    for (const Store& store : draft_.stores)
      cost += (1 + cost_of_strides(store.access, draft_.buffers[store.buffer].type, choice)) *
              evaluations(axes_of(store), choice, items);
    return cost;
  }

 private:
  double extent(size_t axis) const { return double(draft_.extents[axis]); }

  AxisSet axes_of(const Store& store) const {
    return varying_[size_t(store.expr)] | codegen::axes_of(store.access, varying_);
  }

  double evaluations(AxisSet varying, const Choice& choice, double items) const {
    if (varying == 0) return 1;
    double times = items;
    const bool in_loop = (varying & (choice.inside | bit(choice.lanes))) != 0;
    if (in_loop) times *= double(divided_up(draft_.extents[choice.lanes], lanes_));
    for (size_t axis = 0; axis < draft_.extents.size(); ++axis)
      if (axis != choice.lanes && (varying & choice.inside & bit(axis))) times *= extent(axis);
    return times;
  }

  // Lanes across columns have one accumulator where a vector has all of them.
  double cost_of_step(const Choice& choice) const {
    const bool chained = !draft_.reduced[choice.lanes] && draft_.extents[choice.lanes] <= lanes_;
    return chained && steps_inside(choice) > kMostUnrolledSteps ? kChainedStepCost : 1;
  }

  double steps_inside(const Choice& choice) const {
    double steps = 1;
    for (size_t axis = 0; axis < draft_.extents.size(); ++axis)
      if (choice.inside & bit(axis)) steps *= extent(axis);
    return steps;
  }

  // Of a vector's load or store beyond that of a whole one.
  double cost_of_strides(const Access& access, Type type, const Choice& choice) const {
    const int64_t stride = access.strides[choice.lanes].value;
    if (stride == 0 || stride == 1) return 0;
    if (stride == -1) return kReversedCost;
    if (stride < 0 || stride > kWidestTile) return kLaneAccessCost * lanes_;
    // Steps that are written out share what a tile loads; others have a tile to themselves.
    const double loads = choice.written_out ? 0 : double(stride);
    return (bytes_of(type) == 8 ? 2 : 1) * (loads + cost_of_sorting(stride));
  }

  // The permutations that each vector of a tile takes; see prelude/cpu_tiles.inc.
  static double cost_of_sorting(int64_t stride) {
    int64_t halvings = 0;
    for (; stride % 2 == 0; stride /= 2) ++halvings;
    return double(halvings + (stride > 1 ? stride : 0));
  }

  const Draft& draft_;
  const int lanes_;
  const std::vector<AxisSet> varying_;
};

double bytes_of(const Draft& draft, const Access& access, Type type) {
  double bytes = double(bytes_of(type));
  for (size_t axis = 0; axis < draft.extents.size(); ++axis)
    if (access.strides[axis].value != 0) bytes *= double(draft.extents[axis]);
  return bytes;
}

// Where most of the memory is read and written in a row.
Choice usual_choice(const Draft& draft) {
  const size_t parallel = parallel_count(draft), axes = draft.extents.size();
  const AxisSet reduced = reduced_axes(draft);
  if (parallel == axes) return {parallel - 1, reduced};
  if (parallel == 0) return {axes - 1, reduced};
  double along_parallel = 0, along_reduction = 0;
  for_each_access(draft, [&](const Access& access, Type type) {
    const double touched = bytes_of(draft, access, type);
    if (std::abs(access.strides[parallel - 1].value) == 1) along_parallel += touched;
    if (std::abs(access.strides[axes - 1].value) == 1) along_reduction += touched;
  });
  return {along_parallel > along_reduction ? parallel - 1 : axes - 1, reduced};
}

// Whether work items with lanes along the axis would each read the lines of all.
bool reads_far_memory_again(const Draft& draft, size_t axis) {
  bool again = false;
  for_each_access(draft, [&](const Access& access, Type type) {
    again |= std::abs(access.strides[axis].value) > 1 && bytes_of(draft, access, type) > kNearBytes;
  });
  return again && parallel_count(draft) > 0;
}

// Lanes along any of the axes that are reduced. The index that an arg reduction gives counts the
// axes in their order.
std::vector<Choice> choices_of_reduced_axes(const Draft& draft) {
  std::vector<Choice> choices;
  for (const Expr& expr : draft.exprs)
    if (is_arg_reduction(expr.op)) return choices;
  const AxisSet reduced = reduced_axes(draft);
  for (size_t axis = parallel_count(draft); axis < draft.extents.size(); ++axis)
    if (!reads_far_memory_again(draft, axis)) choices.push_back({axis, reduced & ~bit(axis)});
  return choices;
}

// The choices that leave short axes to the steps of a work item.
std::vector<Choice> unrolled_choices(const Draft& draft, double cost_of_body) {
  std::vector<Choice> choices;
  const size_t parallel = parallel_count(draft);
  AxisSet inside = reduced_axes(draft);
  int64_t steps = 1;
  for (size_t axis = parallel; axis < draft.extents.size(); ++axis) steps *= draft.extents[axis];
  const bool reduces = inside != 0;
  const double most_steps = std::min(double(kMostUnrolledSteps), kMostUnrolledCost / cost_of_body);
  for (size_t axis = parallel; axis-- > 0 && double(steps) <= most_steps;) {
    if (inside != 0) choices.push_back({axis, inside, true});
    if (reduces) continue;
    inside |= bit(axis);
    steps *= draft.extents[axis];
  }
  return choices;
}

Lanes lanes_along(const Draft& draft, const Choice& choice) {
  return {draft.reduced[choice.lanes] ? Axis::kReduction : Axis::kParallel};
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
  return {Axis::kParallel, choice.written_out};
}

}  // namespace

Lanes usual_lanes(const Draft& draft) {
  if (draft.extents.empty()) return {Axis::kParallel};
  return lanes_along(draft, usual_choice(draft));
}

Lanes choose_lanes(Draft& draft, int lanes) {
  if (draft.extents.empty()) return {Axis::kParallel};
  const Estimate estimate(draft, lanes);
  const Choice usual = usual_choice(draft);
  Choice best = usual;
  bool changed = false;
  double least = kWorthChoosing * estimate.cost(best);
  std::vector<Choice> others = unrolled_choices(draft, estimate.cost_of_body());
  for (const Choice& choice : choices_of_reduced_axes(draft)) others.push_back(choice);
  if (const size_t parallel = parallel_count(draft); parallel > 0)
    others.push_back({parallel - 1, reduced_axes(draft)});
  for (const Choice& choice : others) {
    const double cost = estimate.cost(choice);
    if (cost >= least) continue;
    best = choice;
    least = cost;
    changed = true;
  }
  if (!changed) return lanes_along(draft, usual);
  return arrange(draft, best);
}

}  // namespace torch_lazy::codegen
