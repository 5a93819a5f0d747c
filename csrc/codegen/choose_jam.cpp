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

class JamChooser {
 public:
  JamChooser(const Kernel& kernel, const std::vector<int64_t>& sizes, int lanes, int64_t most_steps)
      : kernel_(kernel),
        sizes_(sizes),
        most_steps_(most_steps),
        target_{Target::Kind::kCpu, lanes},
        schedule_(make_schedule(kernel, Spilling::kScratch)) {}

  Jam choose() const {
    // Addresses that an index moves are known later than the others.
    if (has_indices(kernel_) || has_scans(kernel_.exprs)) return {};
    if (kernel_.reduction.empty()) return jam_of_squares();
    Jam best;
    if (!is_one_sweep_of_reductions()) return best;
    const double least = kLeastShared * cost_of(kernel_, schedule_.sweeps[0]);
    Shared most;
    for (size_t dimension = 0; dimension < kernel_.parallel.size(); ++dimension) {
      const Shared shared = shared_along(dimension);
      const int steps = steps_of(number(kernel_.parallel[dimension]));
      if (shared.cost < least || shared <= most || steps == 1) continue;
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
    int64_t most = 0;  // registers that squares take for each of their vectors
    for (size_t dimension = 0; dimension + 1 < kernel_.parallel.size(); ++dimension) {
      if (number(kernel_.parallel[dimension]) < target_.lanes / kLeastOfASquare) continue;
      int64_t squares = 0;
      for (size_t id = 0; id < kernel_.exprs.size(); ++id)
        if (is_square_load(kernel_, ExprId(id), dimension))
          squares += bytes_of(kernel_.exprs[id].type) == 8 ? 2 : 1;
      if (squares <= most) continue;
      most = squares;
      best = {int(dimension), target_.lanes};
    }
    return target_.lanes >= kLeastLanes && has_room_for(most) ? best : Jam{};
  }

  // All squares of a work item are in registers at a time.
  bool has_room_for(int64_t squares) const {
    return squares * target_.lanes <= target_.registers();
  }

  bool is_one_sweep_of_reductions() const {
    if (is_unrolled(kernel_) || !kernel_.reduction_total.is(0)) return false;
    if (schedule_.sweeps.size() != 1 || !schedule_.sweeps[0].stores.empty()) return false;
    if (cost_of(kernel_, schedule_.sweeps[0]) > kMostCost) return false;
    return std::ranges::none_of(schedule_.sweeps[0].reductions, [&](ExprId id) {
      return is_arg_reduction(kernel_.exprs[size_t(id)].op);
    });
  }

  bool varies(ExprId id, size_t dimension) const {
    return (schedule_.varying[size_t(id)] & dimension_bit(dimension)) != 0;
  }

  // What the sweep evaluates for vectors whatever the step, and the bytes that it loads of them: of
  // two operands that are read again and again, rather the larger is read once.
  struct Shared {
    double cost = 0;
    double bytes = 0;
    auto operator<=>(const Shared&) const = default;
  };

  // Nothing along what could not be jammed.
  Shared shared_along(size_t dimension) const {
    const size_t lanes = lane_dimension(kernel_);
    if (dimension == lanes) return {};
    const Sweep& sweep = schedule_.sweeps[0];
    Shared shared;
    for (const ExprId id : sweep.exprs) {
      const Expr& expr = kernel_.exprs[size_t(id)];
      if (reads_rows_vector(expr, dimension)) return {};
      if (varies(id, dimension) || !varies(id, lanes)) continue;
      shared.cost += cost_of(expr);
      if (expr.op == Op::kLoad) shared.bytes += bytes_of_load(expr);
    }
    for (const ExprId id : sweep.reductions) {
      const Expr& reduction = kernel_.exprs[size_t(id)];
      if (!varies(reduction.arguments[0], dimension) || reads_rows_vector(reduction, dimension))
        return {};
    }
    return shared;
  }

  // A row's vectors are known for one step at a time.
  bool reads_rows_vector(const Expr& reader, size_t dimension) const {
    return std::ranges::any_of(operands_of(reader), [&](ExprId operand) {
      return is_row_value(operand) && varies(operand, dimension) &&
             varies(operand, lane_dimension(kernel_));
    });
  }

  double bytes_of_load(const Expr& load) const {
    double bytes = double(bytes_of(load.type));
    const std::vector<Size>& strides = load.access.strides;
    for (size_t i = 0; i < strides.size(); ++i) {
      const size_t parallel = kernel_.parallel.size();
      if (strides[i].is(0)) continue;
      bytes *= double(number(i < parallel ? kernel_.parallel[i] : kernel_.reduction[i - parallel]));
    }
    return bytes;
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
    for (int64_t steps = 2; steps <= std::min({most, most_steps_, int64_t{kMostSteps}, extent});
         ++steps) {
      const int64_t cost = divided_up(extent, steps) * (steps + 1);
      if (cost > least) continue;
      best = steps;
      least = cost;
    }
    return int(best);
  }

  const Kernel& kernel_;
  const std::vector<int64_t>& sizes_;
  const int64_t most_steps_;
  const Target target_;
  const Schedule schedule_;
};

}  // namespace

Jam choose_jam(const Kernel& kernel, const std::vector<int64_t>& sizes, int lanes,
               int64_t most_steps) {
  return JamChooser(kernel, sizes, lanes, most_steps).choose();
}

}  // namespace torch_lazy::codegen
