#include "codegen/sweeps.h"

#include <algorithm>

#include "codegen/op_cost.h"
#include "codegen/packet_access.h"

namespace torch_lazy::codegen {
namespace {

// A thread's scratch competes with the rows themselves for its cache.
constexpr uint32_t kMaxScratchValues = 4;
// In the units of primitive::cost_of, in which an exponential is 14.
constexpr int kDear = 12;

bool has_place_in_scratch(Type type) {
  switch (type) {
    case Type::kInt32:
    case Type::kInt64:
    case Type::kFloat8E4M3FN:  // as the float that it is
    case Type::kFloat8E5M2:
    case Type::kBFloat16:
    case Type::kHalf:
    case Type::kFloat:
    case Type::kDouble:
      return true;
    default:
      return false;
  }
}

class Scheduler {
 public:
  Scheduler(const Kernel& kernel, Spilling spilling) : kernel_(kernel), spilling_(spilling) {
    schedule_.varying = varying_dimensions(kernel);
    schedule_.levels = reduction_levels(kernel);
    schedule_.scratch_places.assign(kernel.exprs.size(), -1);
    needed_ = needed_exprs();
    place_stores();
    choose_reductions();
    if (spilling != Spilling::kNone) choose_spilled();
    fill_sweeps();
    fill_rows();
  }

  Schedule take() { return std::move(schedule_); }

 private:
  // Of expression ids, in a vector by id.
  using Set = std::vector<bool>;

  bool in_rows(ExprId id) const {
    return (schedule_.varying[id] & reduction_dimensions(kernel_)) == 0;
  }

  Set needed_exprs() const {
    Set needed(kernel_.exprs.size());
    for (const Store& store : kernel_.stores) {
      for (ExprId operand : operands_of(store)) needed[operand] = true;
    }
    for (size_t i = needed.size(); i-- > 0;) {
      if (!needed[i]) continue;
      for (ExprId operand : operands_of(kernel_.exprs[i])) needed[operand] = true;
    }
    return needed;
  }

  // What a store along the reduction dimensions overwrites may be read until the last sweep, if any
  // load can reach it.
  bool must_wait(const Store& store) const {
    return !kernel_.buffers[store.buffer].exclusive || is_read(kernel_, store.buffer);
  }

  bool is_row_store(const Store& store) const {
    const Dimensions reduction = reduction_dimensions(kernel_);
    Dimensions varies = varying_dimensions(store.access, schedule_.varying);
    for (ExprId operand : operands_of(store)) varies |= schedule_.varying[operand];
    return (varies & reduction) == 0;
  }

  void place_stores() {
    int last_sweep = -1;
    std::vector<int> sweep_of(kernel_.stores.size(), -1);
    for (size_t i = 0; i < kernel_.stores.size(); ++i) {
      const Store& store = kernel_.stores[i];
      if (is_row_store(store)) {
        schedule_.row_stores.push_back(static_cast<uint32_t>(i));
        continue;
      }
      sweep_of[i] = 0;
      for (ExprId operand : operands_of(store)) {
        sweep_of[i] = std::max(sweep_of[i], schedule_.levels[operand]);
      }
      last_sweep = std::max(last_sweep, sweep_of[i]);
    }
    for (size_t i = 0; i < kernel_.exprs.size(); ++i) {
      if (!needed_[i] || !is_reduction(kernel_.exprs[i].op)) continue;
      last_sweep = std::max(last_sweep, schedule_.levels[i] - 1);
    }
    schedule_.sweeps.resize(last_sweep + 1);
    for (size_t i = 0; i < kernel_.stores.size(); ++i) {
      if (sweep_of[i] < 0) continue;
      const int sweep = must_wait(kernel_.stores[i]) ? last_sweep : sweep_of[i];
      schedule_.sweeps[sweep].stores.push_back(static_cast<uint32_t>(i));
    }
  }

  void choose_reductions() {
    for (size_t i = 0; i < kernel_.exprs.size(); ++i) {
      if (!needed_[i] || !is_reduction(kernel_.exprs[i].op)) continue;
      schedule_.sweeps[schedule_.levels[i] - 1].reductions.push_back(static_cast<ExprId>(i));
    }
  }

  std::vector<ExprId> roots_of(const Sweep& sweep) const {
    std::vector<ExprId> roots;
    for (ExprId reduction : sweep.reductions) {
      for (ExprId operand : operands_of(kernel_.exprs[reduction])) roots.push_back(operand);
    }
    for (uint32_t store : sweep.stores) {
      for (ExprId operand : operands_of(kernel_.stores[store])) roots.push_back(operand);
    }
    return roots;
  }

  bool is_spilled(ExprId id) const { return schedule_.scratch_places[id] >= 0; }

  // What a sweep evaluates, where it reloads what an earlier sweep spilled.
  Set evaluated_in(int sweep) const {
    Set evaluated(kernel_.exprs.size());
    for (ExprId root : roots_of(schedule_.sweeps[sweep])) evaluated[root] = true;
    for (size_t i = evaluated.size(); i-- > 0;) {
      const auto id = static_cast<ExprId>(i);
      if (!evaluated[i] || in_rows(id) || is_reloaded(id, sweep)) continue;
      for (ExprId operand : operands_of(kernel_.exprs[i])) evaluated[operand] = true;
    }
    for (size_t i = 0; i < evaluated.size(); ++i) {
      if (in_rows(static_cast<ExprId>(i))) evaluated[i] = false;
    }
    return evaluated;
  }

  bool is_reloaded(ExprId id, int sweep) const {
    return is_spilled(id) && sweep > first_sweep_[id];
  }

  // Of evaluating `id` in a sweep that has nothing of it at hand but what is spilled.
  int cost_again(ExprId id) const {
    Set cone(kernel_.exprs.size());
    cone[id] = true;
    int cost = 0;
    for (size_t i = id + 1; i-- > 0;) {
      const auto at = static_cast<ExprId>(i);
      if (!cone[i] || in_rows(at)) continue;
      if (is_spilled(at)) {
        cost += kReloadCost;
        continue;
      }
      cost += cost_of(kernel_.exprs[i]);
      for (ExprId operand : operands_of(kernel_.exprs[i])) cone[operand] = true;
    }
    return cost;
  }

  // From the last sweep and the last expressions back: what is nearest to a sweep's results saves
  // most.
  void choose_spilled() {
    const int sweeps = static_cast<int>(schedule_.sweeps.size());
    std::vector<int> uses(kernel_.exprs.size());
    first_sweep_.assign(kernel_.exprs.size(), sweeps);
    for (int sweep = sweeps; sweep-- > 0;) {
      const Set evaluated = evaluated_in(sweep);
      for (size_t i = 0; i < evaluated.size(); ++i) {
        if (!evaluated[i]) continue;
        ++uses[i];
        first_sweep_[i] = sweep;
      }
    }
    // Places are few: what is dear comes first, wherever it is.
    for (const int least_cost : {kDear, 0})
      for (int sweep = sweeps; sweep-- > 1;) choose_spilled_for(sweep, uses, least_cost);
  }

  void choose_spilled_for(int sweep, const std::vector<int>& uses, int least_cost) {
    for (size_t i = kernel_.exprs.size(); i-- > 0;) {
      if (schedule_.scratch_values == kMaxScratchValues) return;
      const auto id = static_cast<ExprId>(i);
      // Evaluated for every choice: what is spilled frees its operands.
      if (is_spilled(id) || first_sweep_[i] >= sweep || !evaluated_in(sweep)[i]) continue;
      const Type type = kernel_.exprs[i].type;
      const int later = uses[i] - 1;
      if (!can_be_spilled(id) ||
          schedule_.scratch_values + uint32_t(width_of(type)) > kMaxScratchValues ||
          cost_again(id) < least_cost || !is_worth_spilling(id, later)) {
        continue;
      }
      schedule_.scratch_places[i] = static_cast<int32_t>(schedule_.scratch_values);
      schedule_.scratch_values += uint32_t(width_of(type));
    }
  }

  bool is_worth_spilling(ExprId id, int later) const {
    if (spilling_ == Spilling::kPackets) {
      return later > 0 && is_packet_load(kernel_, id, schedule_.varying);
    }
    if (spilling_ == Spilling::kRegisters) {
      return later > 0 && (kernel_.exprs[id].op == Op::kLoad || cost_again(id) > kReloadCost);
    }
    return cost_again(id) * later > kSpillCost + kReloadCost * later;
  }

  // Scratch is laid out for vectors that are evaluated in the innermost of the loops.
  bool can_be_spilled(ExprId id) const {
    const size_t innermost = kernel_.parallel.size() + kernel_.reduction.size() - 1;
    const size_t lanes = lane_dimension(kernel_);
    if (lanes == kNoDimension) return false;
    const Dimensions wanted = dimension_bit(lanes) | dimension_bit(innermost);
    return (schedule_.varying[id] & wanted) == wanted &&
           (spilling_ != Spilling::kScratch || has_place_in_scratch(kernel_.exprs[id].type));
  }

  void fill_sweeps() {
    if (first_sweep_.empty()) first_sweep_.assign(kernel_.exprs.size(), 0);
    for (size_t p = 0; p < schedule_.sweeps.size(); ++p) {
      Sweep& sweep = schedule_.sweeps[p];
      const Set evaluated = evaluated_in(static_cast<int>(p));
      for (size_t i = 0; i < evaluated.size(); ++i) {
        const auto id = static_cast<ExprId>(i);
        if (!evaluated[i]) continue;
        if (is_reloaded(id, static_cast<int>(p))) {
          sweep.reloaded.push_back(id);
        } else {
          sweep.exprs.push_back(id);
          if (is_spilled(id)) sweep.spilled.push_back(id);
        }
      }
    }
  }

  void fill_rows() {
    schedule_.rows.resize(schedule_.sweeps.size() + 1);
    for (size_t i = 0; i < kernel_.exprs.size(); ++i) {
      const auto id = static_cast<ExprId>(i);
      if (needed_[i] && in_rows(id)) schedule_.rows[schedule_.levels[i]].push_back(id);
    }
  }

  const Kernel& kernel_;
  const Spilling spilling_;
  Schedule schedule_;
  Set needed_;
  std::vector<int> first_sweep_;  // in which an expression is evaluated at the earliest
};

}  // namespace

Schedule make_schedule(const Kernel& kernel, Spilling spilling) {
  return Scheduler(kernel, spilling).take();
}

}  // namespace torch_lazy::codegen
