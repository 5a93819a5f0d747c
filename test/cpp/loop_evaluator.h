// What a kernel of the loop IR means, computed in the most straightforward way: floating values in
// double (and rounded to what they are stored as), one element at a time, no vectors, no sweeps.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>
#include <vector>

#include "codegen/loop_ir.h"
#include "loop_numbers.h"
#include "ops/philox.h"

namespace torch_lazy::codegen {

class LoopEvaluator {
 public:
  LoopEvaluator(const Kernel& kernel, std::vector<void*> pointers, std::vector<int64_t> sizes,
                std::vector<double> numbers)
      : kernel_(kernel),
        pointers_(std::move(pointers)),
        sizes_(std::move(sizes)),
        numbers_(std::move(numbers)) {}

  // Loads see what memory held before: results are written when all are known.
  void run() {
    index_.assign(kernel_.parallel.size() + kernel_.reduction.size(), 0);
    for_each(0, kernel_.parallel.size(), [&] { evaluate_parallel_point(); });
    for (const Write& write : writes_) {
      write_number(kernel_.buffers[write.buffer].type, pointers_[write.buffer], write.element,
                   write.value);
    }
  }

 private:
  struct Write {
    uint32_t buffer;
    int64_t element;
    Number value;
  };

  int64_t of(Size size) const { return size.slot ? sizes_[size.value] : size.value; }

  // [first, last) of a dimension, given the indices of those before it.
  std::pair<int64_t, int64_t> range(size_t dimension) const {
    const size_t parallel = kernel_.parallel.size();
    if (dimension < parallel) return {0, of(kernel_.parallel[dimension])};
    const int64_t extent = of(kernel_.reduction[dimension - parallel]);
    if (kernel_.reduction_total.is(0) || dimension > parallel) return {0, extent};
    const int64_t chunk = index_[parallel - (kernel_.axis == Axis::kReduction ? 1 : 2)];
    return {chunk * extent, std::min((chunk + 1) * extent, of(kernel_.reduction_total))};
  }

  template <class Visit>
  void for_each(size_t first, size_t last, const Visit& visit) {
    if (first == last) return visit();
    const auto [begin, end] = range(first);
    for (index_[first] = begin; index_[first] < end; ++index_[first]) {
      for_each(first + 1, last, visit);
    }
    index_[first] = 0;
  }

  void evaluate_parallel_point() {
    const size_t parallel = kernel_.parallel.size();
    const size_t all = parallel + kernel_.reduction.size();
    reduction_values_.assign(kernel_.exprs.size(), std::nullopt);
    for (const Store& store : kernel_.stores) {
      const auto write = [&] {
        if (store.predicate != kNoPredicate && !value(store.predicate).integer) return;
        writes_.push_back({store.buffer, element(store.access), value(store.expr)});
      };
      if (store.access.strides.size() == parallel) {
        write();
      } else {
        for_each(parallel, all, write);
      }
    }
  }

  int64_t element(const Access& access) {
    int64_t element = of(access.offset);
    for (size_t i = 0; i < access.strides.size(); ++i) element += index_[i] * of(access.strides[i]);
    for (const auto& indirect : access.indirect) {
      element += value(indirect.index).integer * of(indirect.stride);
    }
    return element;
  }

  Number value(ExprId id) {
    const Expr& expr = kernel_.exprs[id];
    if (is_reduction(expr.op)) {
      if (!reduction_values_[id]) reduction_values_[id] = reduce(expr);
      return *reduction_values_[id];
    }
    return round_to(expr.type, is_scan(expr.op) ? scan(expr) : evaluate(expr));
  }

  // Of the steps up to the one at hand.
  Number scan(const Expr& expr) {
    const size_t along = kernel_.parallel.size();
    const int64_t last = index_[along];
    const bool sums = expr.op == Op::kScanSum;
    Number total = identity(sums ? Op::kReduceSum : Op::kReduceProd, expr.type);
    for (index_[along] = 0; index_[along] <= last; ++index_[along])
      total = binary(sums ? Op::kAdd : Op::kMul, expr.type, total, value(expr.arguments[0]));
    index_[along] = last;
    return total;
  }

  Number reduce(const Expr& expr) {
    const std::vector<int64_t> outside = index_;
    const Type type = kernel_.exprs[expr.arguments[0]].type;
    std::optional<Number> best;
    int64_t best_index = 0;
    int64_t flat = kernel_.reduction_total.is(0) ? 0 : range(kernel_.parallel.size()).first;
    for_each(kernel_.parallel.size(), index_.size(), [&] {
      const Number next = value(expr.arguments[0]);
      if (!best) {
        best = next;
        best_index = flat;
      } else if (takes_over(expr.op, type, next, *best)) {
        best_index = flat;
        best = next;
      } else {
        best = combine(expr.op, type, *best, next);
      }
      ++flat;
    });
    index_ = outside;
    if (expr.op == Op::kReduceArgMax || expr.op == Op::kReduceArgMin)
      return {.integer = best_index};
    return best ? round_to(type, *best) : identity(expr.op, type);
  }

  static bool takes_over(Op op, Type type, Number next, Number best) {
    if (op != Op::kReduceArgMax && op != Op::kReduceArgMin) return false;
    const bool max = op == Op::kReduceArgMax;
    if (!is_floating(type)) {
      return max ? next.integer > best.integer : next.integer < best.integer;
    }
    if (std::isnan(next.real)) return !std::isnan(best.real);
    return max ? next.real > best.real : next.real < best.real;
  }

  static Number combine(Op op, Type type, Number a, Number b) {
    switch (op) {
      case Op::kReduceSum:
        return binary(Op::kAdd, type, a, b);
      case Op::kReduceProd:
        return binary(Op::kMul, type, a, b);
      case Op::kReduceMin:
        return binary(Op::kMin, type, a, b);
      case Op::kReduceMax:
        return binary(Op::kMax, type, a, b);
      case Op::kReduceAnd:
        return {.integer = a.integer & b.integer};
      case Op::kReduceOr:
        return {.integer = a.integer | b.integer};
      default:
        return a;  // an arg reduction that was not taken over
    }
  }

  static Number identity(Op op, Type type) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    switch (op) {
      case Op::kReduceProd:
      case Op::kReduceAnd:
        return {.real = 1, .integer = 1};
      case Op::kReduceMin:
      case Op::kReduceMax: {
        if (is_floating(type)) return {.real = op == Op::kReduceMin ? kInfinity : -kInfinity};
        const int bits = static_cast<int>(8 * bytes_of(type));
        if (type == Type::kUInt8) return {.integer = op == Op::kReduceMin ? 255 : 0};
        const auto greatest = static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1);
        return {.integer = op == Op::kReduceMin ? greatest : -greatest - 1};
      }
      default:
        return {};
    }
  }

  Number evaluate(const Expr& expr) {
    switch (expr.op) {
      case Op::kLoad:
        if (expr.predicate != kNoPredicate && !value(expr.predicate).integer) return {};
        return read_number(expr.type, pointers_[expr.buffer], element(expr.access));
      case Op::kNumber: {
        const double number = numbers_[expr.value.value];
        return {.real = expr.type == Type::kFloat ? static_cast<float>(number) : number,
                .integer = static_cast<int64_t>(number)};
      }
      case Op::kInteger:
        return {.real = static_cast<double>(of(expr.value)), .integer = of(expr.value)};
      case Op::kIndex:
        return {.integer = index_[expr.dimension]};
      case Op::kCast:
        return cast(kernel_.exprs[expr.arguments[0]].type, value(expr.arguments[0]), expr.type);
      case Op::kSelect:
        return value(expr.arguments[0]).integer ? value(expr.arguments[1])
                                                : value(expr.arguments[2]);
      case Op::kFma:
        return {.real = value(expr.arguments[0]).real * value(expr.arguments[1]).real +
                        value(expr.arguments[2]).real};
      case Op::kPhiloxUniform:
        return {.real = philox_uniform(uint64_t(value(expr.arguments[1]).integer),
                                       uint64_t(value(expr.arguments[0]).integer))};
      default:
        break;
    }
    const Type type = kernel_.exprs[expr.arguments[0]].type;
    const Number a = value(expr.arguments[0]);
    if (expr.arguments.size() == 1) return unary(expr.op, type, a);
    return binary(expr.op, type, a, value(expr.arguments[1]));
  }

  static Number cast(Type from, Number number, Type to) {
    if (to == Type::kBool) {
      return {.integer = is_floating(from) ? number.real != 0 : number.integer != 0};
    }
    if (is_floating(from)) {
      if (is_floating(to)) return number;
      return {.integer = static_cast<int64_t>(number.real)};
    }
    return {.real = static_cast<double>(number.integer), .integer = number.integer};
  }

  static Number unary(Op op, Type type, Number a) {
    const bool real = is_floating(type);
    switch (op) {
      case Op::kNeg:
        return {.real = -a.real, .integer = -a.integer};
      case Op::kAbs:
        return {.real = std::abs(a.real), .integer = std::abs(a.integer)};
      case Op::kNot:
        return {.integer = type == Type::kBool ? !a.integer : ~a.integer};
      case Op::kSqrt:
        return {.real = std::sqrt(a.real)};
      case Op::kRsqrt:
        return {.real = 1 / std::sqrt(a.real)};
      case Op::kExp:
        return {.real = std::exp(a.real)};
      case Op::kLog:
        return {.real = std::log(a.real)};
      case Op::kTanh:
        return {.real = std::tanh(a.real)};
      case Op::kErf:
        return {.real = std::erf(a.real)};
      case Op::kIsNan:
        return {.integer = real && std::isnan(a.real)};
      default:
        throw std::logic_error(std::string("the evaluator lacks ") + name_of(op));
    }
  }

  static Number compare(Op op, double a, double b, int64_t i, int64_t j, bool real) {
    switch (op) {
      case Op::kEqual:
        return {.integer = real ? a == b : i == j};
      case Op::kNotEqual:
        return {.integer = real ? a != b : i != j};
      case Op::kLess:
        return {.integer = real ? a < b : i < j};
      case Op::kLessEqual:
        return {.integer = real ? a <= b : i <= j};
      case Op::kGreater:
        return {.integer = real ? a > b : i > j};
      default:
        return {.integer = real ? a >= b : i >= j};
    }
  }

  static Number binary(Op op, Type type, Number a, Number b) {
    if (op >= Op::kEqual && op <= Op::kGreaterEqual) {
      return compare(op, a.real, b.real, a.integer, b.integer, is_floating(type));
    }
    const auto i = static_cast<uint64_t>(a.integer);
    const auto j = static_cast<uint64_t>(b.integer);
    const bool nan = std::isnan(a.real) || std::isnan(b.real);
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    switch (op) {
      case Op::kAdd:
        return {.real = a.real + b.real, .integer = static_cast<int64_t>(i + j)};
      case Op::kSub:
        return {.real = a.real - b.real, .integer = static_cast<int64_t>(i - j)};
      case Op::kMul:
        return {.real = a.real * b.real, .integer = static_cast<int64_t>(i * j)};
      case Op::kDiv:
        return {.real = a.real / b.real};
      case Op::kMin:
        return {.real = nan ? kNan : std::min(a.real, b.real),
                .integer = std::min(a.integer, b.integer)};
      case Op::kMax:
        return {.real = nan ? kNan : std::max(a.real, b.real),
                .integer = std::max(a.integer, b.integer)};
      case Op::kAnd:
        return {.integer = a.integer & b.integer};
      case Op::kOr:
        return {.integer = a.integer | b.integer};
      case Op::kXor:
        return {.integer = a.integer ^ b.integer};
      default:
        throw std::logic_error(std::string("the evaluator lacks ") + name_of(op));
    }
  }

  const Kernel& kernel_;
  const std::vector<void*> pointers_;
  const std::vector<int64_t> sizes_;
  const std::vector<double> numbers_;
  std::vector<int64_t> index_;  // of the point at hand, of all dimensions
  std::vector<std::optional<Number>>
      reduction_values_;  // at the parallel point at hand, by expression
  std::vector<Write> writes_;
};

}  // namespace torch_lazy::codegen
