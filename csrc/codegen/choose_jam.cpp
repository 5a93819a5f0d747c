#include "codegen/choose_jam.h"

#include <algorithm>

#include "codegen/divide.h"
#include "codegen/loop_analysis.h"
#include "codegen/op_cost.h"
#include "codegen/packet_access.h"
#include "codegen/prelude.h"
#include "codegen/sweeps.h"

namespace torch_lazy::codegen {
namespace {

// More steps load little less, and want a register each for an address.
constexpr int kMostSteps = 8;
// Of the vector registers, those that accumulators may take.
constexpr double kShareOfRegisters = 0.75;
// Of what a sweep costs in each step, at least this much is the same in all, and it costs no more
// than that: of what computes, loads are a small part.
constexpr double kLeastShared = 0.15;
constexpr int kMostCost = 12;

// A square of fewer steps than this part of its lanes is read one element at a time. With fewer
// lanes than these so is everything.
constexpr int64_t kLeastOfASquare = 4;
constexpr int kLeastLanes = 8;
// As many registers as squares may take, of those that there are.
constexpr int64_t kMostSquares = 1;

class Chooser {
 public:
  Chooser(const Kernel& kernel, const std::vector<int64_t>& sizes, int lanes)
      : kernel_(kernel),
        sizes_(sizes),
        target_{Target::Kind::kCpu, lanes},
        schedule_(make_schedule(kernel, Spilling::kScratch)) {}

  Jam choose() const {
    if (kernel_.reduction.empty()) return jam_of_squares();
    Jam best;
    if (!is_one_sweep_of_sums()) return best;
    double most = kLeastShared * cost_of(kernel_, schedule_.sweeps[0]);
    for (size_t dimension = 0; dimension < kernel_.parallel.size(); ++dimension) {
      const double shared = shared_cost(dimension);
      const int steps = steps_of(number(kernel_.parallel[dimension]));
      if (shared == 0 || shared < most || steps == 1) continue;
      most = shared;
      best = {int(dimension), steps, vectors()};
    }
    return best;
  }

 private:
  int64_t number(Size size) const { return size.slot ? sizes_[size_t(size.value)] : size.value; }

  // Where most loads are squares.
  Jam jam_of_squares() const {
    Jam best;
    int64_t most = 0;
    for (size_t dimension = 0; dimension + 1 < kernel_.parallel.size(); ++dimension) {
      if (number(kernel_.parallel[dimension]) < target_.lanes / kLeastOfASquare) continue;
      int64_t squares = 0;
      for (size_t id = 0; id < kernel_.exprs.size(); ++id)
        squares += is_square_load(kernel_, ExprId(id), dimension);
      if (squares <= most) continue;
      most = squares;
      best = {int(dimension), target_.lanes};
    }
    return target_.lanes >= kLeastLanes && has_room_for(most) ? best : Jam{};
  }

  // Squares are in registers, and so is what they are made into; a part of it may lie in memory.
  bool has_room_for(int64_t squares) const {
    return squares * target_.lanes <= kMostSquares * target_.registers();
  }

  bool is_one_sweep_of_sums() const {
    if (is_unrolled(kernel_) || !kernel_.reduction_total.is(0)) return false;
    if (schedule_.sweeps.size() != 1 || !schedule_.sweeps[0].stores.empty()) return false;
    if (cost_of(kernel_, schedule_.sweeps[0]) > kMostCost) return false;
    const auto is_arg = [&](ExprId id) {
      const Op op = kernel_.exprs[size_t(id)].op;
      return op == Op::kReduceArgMax || op == Op::kReduceArgMin;
    };
    const auto gathers = [](const auto& of) { return !of.access.indirect.empty(); };
    return std::ranges::none_of(schedule_.sweeps[0].reductions, is_arg) &&
           std::ranges::none_of(kernel_.exprs, gathers) &&
           std::ranges::none_of(kernel_.stores, gathers);
  }

  bool varies(ExprId id, size_t dimension) const {
    return (schedule_.varying[size_t(id)] & dimension_bit(dimension)) != 0;
  }

  // Of what the sweep evaluates for vectors, whatever the step. 0: what could not be jammed.
  double shared_cost(size_t dimension) const {
    const size_t lanes = lane_dimension(kernel_);
    if (dimension == lanes) return 0;
    const Sweep& sweep = schedule_.sweeps[0];
    double cost = 0;
    for (const ExprId id : sweep.exprs) {
      const Expr& expr = kernel_.exprs[size_t(id)];
      if (!varies(id, dimension) && varies(id, lanes)) cost += cost_of(expr);
      // A row's vectors are known for one step at a time.
      for (const ExprId operand : operands_of(expr))
        if (is_row_value(operand) && varies(operand, dimension) && varies(operand, lanes)) return 0;
    }
    const bool all_vary = std::ranges::all_of(sweep.reductions, [&](ExprId id) {
      return varies(kernel_.exprs[size_t(id)].arguments[0], dimension);
    });
    return all_vary ? cost : 0;
  }

  bool is_row_value(ExprId id) const {
    return (schedule_.varying[size_t(id)] & reduction_dimensions(kernel_)) == 0;
  }

  // Fewer for columns of which one vector has all: the code for several would never run.
  int vectors() const {
    const bool one =
        kernel_.axis == Axis::kParallel && number(kernel_.parallel.back()) <= target_.lanes;
    return one ? 1 : Jam::kMostVectors;
  }

  // The number of steps, up to as many as registers allow, with which the fewest are computed for
  // nothing at the end of so many.
  int steps_of(int64_t extent) const {
    double registers = 0;  // of a step
    for (const ExprId id : schedule_.sweeps[0].reductions)
      registers += double(bytes_of(kernel_.exprs[size_t(id)].type)) / 4;
    if (kernel_.axis == Axis::kParallel) registers *= vectors();
    const auto most = int64_t(kShareOfRegisters * target_.registers() / registers);
    int64_t best = 1, least = 2 * extent;
    for (int64_t steps = 2; steps <= std::min({most, int64_t{kMostSteps}, extent}); ++steps) {
      const int64_t cost = divided_up(extent, steps) * (steps + 1);
      if (cost > least) continue;
      best = steps;
      least = cost;
    }
    return int(best);
  }

  const Kernel& kernel_;
  const std::vector<int64_t>& sizes_;
  const Target target_;
  const Schedule schedule_;
};

}  // namespace

Jam choose_jam(const Kernel& kernel, const std::vector<int64_t>& sizes, int lanes) {
  return Chooser(kernel, sizes, lanes).choose();
}

}  // namespace torch_lazy::codegen
