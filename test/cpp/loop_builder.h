// Kernels of the loop IR, written down in tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "codegen/loop_ir.h"

namespace torch_lazy::codegen {

// Constant sizes, as Access and Kernel want them.
inline std::vector<Size> sizes(std::initializer_list<int64_t> numbers) {
  std::vector<Size> result;
  for (int64_t number : numbers) result.push_back(Size::constant(number));
  return result;
}

inline Size slot(uint32_t index) {
  return Size::of_slot(index);
}
inline Size one() {
  return Size::constant(1);
}

struct LoopBuilder {
  Kernel kernel;

  LoopBuilder(Axis axis, std::vector<Size> parallel, std::vector<Size> reduction,
              Size block = Size::constant(256)) {
    kernel.name = "kernel";
    kernel.axis = axis;
    kernel.parallel = std::move(parallel);
    kernel.reduction = std::move(reduction);
    if (axis == Axis::kParallel) kernel.block = block;
  }

  uint32_t input(Type type) {
    kernel.buffers.push_back({type, "in" + std::to_string(kernel.buffers.size()), false, true});
    return static_cast<uint32_t>(kernel.buffers.size() - 1);
  }
  uint32_t output(Type type) {
    kernel.buffers.push_back({type, "out" + std::to_string(kernel.buffers.size()), true, true});
    return static_cast<uint32_t>(kernel.buffers.size() - 1);
  }

  ExprId add(Expr expr) {
    kernel.exprs.push_back(std::move(expr));
    return static_cast<ExprId>(kernel.exprs.size() - 1);
  }
  Type type_of(ExprId id) const { return kernel.exprs[id].type; }

  ExprId load(uint32_t buffer, std::vector<Size> strides, ExprId predicate = kNoPredicate,
              std::vector<Access::Indirect> indirect = {}) {
    Expr expr{.op = Op::kLoad, .type = kernel.buffers[buffer].type};
    expr.buffer = buffer;
    expr.access = {Size::constant(0), std::move(strides), std::move(indirect)};
    expr.predicate = predicate;
    return add(std::move(expr));
  }
  ExprId number(uint32_t slot, Type type = Type::kFloat) {
    kernel.number_slots = std::max(kernel.number_slots, slot + 1);
    Expr expr{.op = Op::kNumber, .type = type};
    expr.value = Size::of_slot(slot);
    return add(std::move(expr));
  }
  ExprId integer(int64_t value, Type type) {
    Expr expr{.op = Op::kInteger, .type = type};
    expr.value = Size::constant(value);
    return add(std::move(expr));
  }
  ExprId index(uint32_t dimension) {
    Expr expr{.op = Op::kIndex, .type = Type::kInt64};
    expr.dimension = dimension;
    return add(std::move(expr));
  }
  ExprId cast(ExprId argument, Type type) {
    return add({.op = Op::kCast, .type = type, .arguments = {argument}});
  }
  // Of the type that the arguments have: the last one's, for a select.
  ExprId op(Op op, std::vector<ExprId> arguments) {
    Type type = type_of(arguments.back());
    if ((op >= Op::kEqual && op <= Op::kGreaterEqual) || op == Op::kIsNan || op == Op::kIsInf) {
      type = Type::kBool;
    }
    if (op == Op::kPhiloxUniform) type = Type::kFloat;
    if (op == Op::kReduceArgMax || op == Op::kReduceArgMin) type = Type::kInt64;
    return add({.op = op, .type = type, .arguments = std::move(arguments)});
  }
  void store(uint32_t buffer, std::vector<Size> strides, ExprId expr,
             ExprId predicate = kNoPredicate, std::vector<Access::Indirect> indirect = {}) {
    kernel.stores.push_back(
        {buffer, {Size::constant(0), std::move(strides), std::move(indirect)}, expr, predicate});
  }
};

}  // namespace torch_lazy::codegen
