// verify(): what the printer and its targets take for granted about a kernel.

#include <cctype>
#include <stdexcept>
#include <string>
#include <vector>

#include "codegen/loop_analysis.h"
#include "codegen/loop_ir.h"
#include "codegen/packet_access.h"
#include "codegen/thread_loop.h"

namespace torch_lazy::codegen {
namespace {

bool is_identifier(const std::string& name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) return false;
  for (char c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  }
  return true;
}

bool is_logical(Op op) {
  return op >= Op::kAnd && op <= Op::kNot;
}
bool is_shift(Op op) {
  return op == Op::kShiftLeft || op == Op::kShiftRight;
}
bool is_integer(Type type) {
  return !is_floating(type) && type != Type::kBool;
}

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel) : kernel_(kernel) {}

  void run() {
    check_frame();
    for (size_t i = 0; i < kernel_.exprs.size(); ++i) check_expr(static_cast<ExprId>(i));
    varying_ = varying_dimensions(kernel_);
    for (size_t i = 0; i < kernel_.stores.size(); ++i) check_store(i);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::invalid_argument("loop IR of kernel '" + kernel_.name + "': " + where_ + " " + what);
  }
  void require(bool condition, const std::string& what) const {
    if (!condition) fail(what);
  }

  void check_frame() {
    where_ = "the kernel";
    require(is_identifier(kernel_.name), "has a name that is no C identifier");
    require(kernel_.parallel.size() + kernel_.reduction.size() <= kMaxDimensions,
            "has more than " + std::to_string(kMaxDimensions) + " dimensions");
    require(!kernel_.stores.empty(), "stores nothing");
    for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
      const std::string& name = kernel_.buffers[i].name;
      require(is_identifier(name), "has buffer '" + name + "', whose name is no C identifier");
      for (size_t j = 0; j < i; ++j) {
        require(kernel_.buffers[j].name != name, "has two buffers named '" + name + "'");
      }
    }
    for (Size extent : kernel_.parallel) check_extent(extent);
    for (Size extent : kernel_.reduction) check_extent(extent);
    check_extent(kernel_.block);
    check_extent(kernel_.reduction_total);
    if (kernel_.axis == Axis::kReduction) {
      require(!kernel_.reduction.empty(), "has lanes along reduction dimensions but none of these");
    } else if (!kernel_.parallel.empty()) {
      require(!kernel_.block.is(0), "has lanes along a parallel dimension but no block");
    }
    if (kernel_.thread_loop.holds_row) {
      require(
          kernel_.axis == Axis::kReduction && kernel_.reduction.size() == 1 &&
              kernel_.reduction_total.is(0),
          "holds its rows but has not one reduction dimension, whole, that the lanes run along");
    }
    check_flat_loop();
    const int threads = kernel_.thread_loop.threads;
    require(threads >= 0 && threads <= ThreadLoop::kMostThreads && (threads & (threads - 1)) == 0,
            "has threads of its own whose number is no power of two up to a block's most");
    require(threads == 0 || kernel_.thread_loop.transposed < 0,
            "has a number of threads of its own, and transposes");
    require(kernel_.instances > 0, "has no instance");
    if (kernel_.thread_loop.is_long_row()) {
      require(kernel_.thread_loop.holds_row && kernel_.thread_loop.packet > 1 &&
                  kernel_.thread_loop.shared_packets % ThreadLoop::kStreamedPackets == 0,
              "has rows in shared memory that it does not hold by packets");
    }
    if (const int transposed = kernel_.thread_loop.transposed; transposed >= 0) {
      require(kernel_.axis == Axis::kParallel && kernel_.reduction.empty() &&
                  size_t(transposed) + 1 < kernel_.parallel.size(),
              "transposes along no parallel dimension before the lanes', or reduces");
      require(
          kernel_.thread_loop.square > 0 && kernel_.thread_loop.square % ThreadLoop::kColumns == 0,
          "transposes squares that its threads do not share");
    }
    if (kernel_.thread_loop.rows > 1) {
      require(kernel_.axis == Axis::kParallel && !kernel_.parallel.empty() &&
                  !kernel_.reduction.empty(),
              "shares reduction steps but has none, or lanes along them");
      const ThreadLoop& loop = kernel_.thread_loop;
      const int sharing = loop.rows * loop.columns();
      require(loop.columns() <= ThreadLoop::kColumns && sharing % ThreadLoop::kColumns == 0 &&
                  sharing <= most_threads(kernel_),
              "shares reduction steps among threads that are no whole warps, or too many");
    }
    check_jam();
    if (!kernel_.reduction_total.is(0)) {
      const size_t lanes = kernel_.axis == Axis::kParallel ? 1 : 0;
      require(!kernel_.reduction.empty(), "is chunked but has no reduction dimension");
      require(kernel_.parallel.size() > lanes,
              "is chunked but has no parallel dimension for the chunks");
    }
  }

  void check_jam() const {
    const Jam& jam = kernel_.jam;
    if (jam.steps == 1) return;
    require(jam.steps > 1 && jam.dimension >= 0 &&
                size_t(jam.dimension) < kernel_.parallel.size() &&
                size_t(jam.dimension) != lane_dimension(kernel_),
            "jams steps of no parallel dimension, or of the lanes'");
    require(kernel_.reduction_total.is(0) && kernel_.instances == 1,
            "jams steps but is chunked or batched");
    require(!has_indices(kernel_), "jams steps but gathers or scatters");
  }

  // In which each thread has other steps, so that none could store what some have in common.
  void check_flat_loop() const {
    if (!kernel_.thread_loop.flat) return;
    require(kernel_.reduction.size() > 1,
            "has one loop over the steps of several reduction dimensions, but not several");
    for (const Store& store : kernel_.stores) {
      const std::vector<Size>& strides = store.access.strides;
      bool varies = false;  // along an outer one of them
      for (size_t i = kernel_.parallel.size(); i + 1 < strides.size(); ++i)
        varies |= !strides[i].is(0);
      require(!varies || !strides.back().is(0) || !store.access.indirect.empty(),
              "stores along some reduction dimensions in a loop over the steps of all");
    }
  }

  void check_size(Size size) const {
    if (!size.slot) return;
    require(size.value >= 0 && size.value < kernel_.size_slots,
            "uses size slot " + std::to_string(size.value) + " of " +
                std::to_string(kernel_.size_slots));
  }
  void check_extent(Size size) const {
    check_size(size);
    require(size.slot || size.value >= 0, "has a negative extent " + std::to_string(size.value));
  }

  void check_operand(ExprId operand, ExprId limit) const {
    require(operand >= 0 && operand < limit,
            "reads %" + std::to_string(operand) + ", which does not come before it");
  }

  Type type_of(ExprId id) const { return kernel_.exprs[id].type; }

  void require_type(ExprId operand, Type type) const {
    require(type_of(operand) == type, "needs %" + std::to_string(operand) + " of type " +
                                          name_of(type) + ", which is " +
                                          name_of(type_of(operand)));
  }

  void check_access(uint32_t buffer, const Access& access) const {
    require(buffer < kernel_.buffers.size(), "names buffer " + std::to_string(buffer) + " of " +
                                                 std::to_string(kernel_.buffers.size()));
    check_size(access.offset);
    for (Size stride : access.strides) {
      check_size(stride);
      require(stride.slot || stride.value >= -1, "has a negative stride");
    }
    for (const auto& indirect : access.indirect) {
      check_size(indirect.stride);
      require_type(indirect.index, Type::kInt64);
    }
  }

  void check_expr(ExprId id) {
    const Expr& expr = kernel_.exprs[id];
    where_ = "%" + std::to_string(id) + " (" + name_of(expr.op) + ")";
    require(static_cast<int>(expr.arguments.size()) == argument_count(expr.op),
            "has " + std::to_string(expr.arguments.size()) + " arguments, not " +
                std::to_string(argument_count(expr.op)));
    for (ExprId operand : operands_of(expr)) check_operand(operand, id);
    if (expr.predicate != kNoPredicate) {
      require(expr.op == Op::kLoad, "has a predicate but is no load");
      require_type(expr.predicate, Type::kBool);
    }
    if (is_low(expr.type)) {
      require(expr.op == Op::kLoad || expr.op == Op::kCast || expr.op == Op::kBitcast,
              std::string("computes in ") + name_of(expr.type) + "; cast to float first");
    }
    if (is_reduction(expr.op)) {
      require(!kernel_.reduction.empty(),
              "is a reduction in a kernel without reduction dimensions");
    }
    if (is_scan(expr.op)) check_scan();
    check_types(expr);
  }

  void check_scan() const {
    require(kernel_.reduction.size() == 1 && kernel_.reduction_total.is(0),
            "is a scan in a kernel that has not one reduction dimension, whole");
    require(kernel_.jam.steps == 1 && kernel_.instances == 1 && !kernel_.thread_loop.flat,
            "is a scan but steps are jammed, batched or shared");
  }

  void check_types(const Expr& expr) const {
    const std::string type = name_of(expr.type);
    switch (expr.op) {
      case Op::kLoad:
        check_access(expr.buffer, expr.access);
        require(expr.access.strides.size() == kernel_.parallel.size() + kernel_.reduction.size(),
                "has " + std::to_string(expr.access.strides.size()) +
                    " strides, not one for every dimension");
        require(kernel_.buffers[expr.buffer].type == expr.type,
                "loads " + type + " from a buffer of another type");
        return;
      case Op::kNumber:
        require(expr.value.slot && expr.value.value >= 0 && expr.value.value < kernel_.number_slots,
                "names no number slot of the " + std::to_string(kernel_.number_slots));
        return;
      case Op::kInteger:
        check_size(expr.value);
        return;
      case Op::kIndex:
        require(expr.type == Type::kInt64, "is of type " + type + ", not int64");
        require(expr.dimension < kernel_.parallel.size() + kernel_.reduction.size(),
                "names dimension " + std::to_string(expr.dimension) + ", which does not exist");
        return;
      case Op::kCast:
        return;
      case Op::kBitcast:
        require(bytes_of(type_of(expr.arguments[0])) == bytes_of(expr.type),
                "changes the number of bytes");
        return;
      case Op::kSelect:
        require_type(expr.arguments[0], Type::kBool);
        require_type(expr.arguments[1], expr.type);
        require_type(expr.arguments[2], expr.type);
        return;
      case Op::kIsNan:
      case Op::kIsInf:
        require(expr.type == Type::kBool, "is of type " + type + ", not bool");
        require_computes(type_of(expr.arguments[0]));
        return;
      case Op::kWithin:
        require(expr.type == Type::kInt64, "is of type " + type + ", not int64");
        for (const ExprId argument : expr.arguments) require_type(argument, Type::kInt64);
        return;
      case Op::kPhiloxUniform:
        require(expr.type == Type::kFloat, "is of type " + type + ", not float");
        for (const ExprId argument : expr.arguments) require_type(argument, Type::kInt64);
        return;
      default:
        check_arithmetic(expr);
    }
  }

  void require_computes(Type type) const {
    require(!is_low(type), std::string("computes with ") + name_of(type) + "; cast to float first");
  }

  void check_arithmetic(const Expr& expr) const {
    const std::string type = name_of(expr.type);
    const Type operand_type = type_of(expr.arguments[0]);
    require_computes(operand_type);
    for (ExprId argument : expr.arguments) require_type(argument, operand_type);
    if (is_comparison(expr.op)) {
      require(expr.type == Type::kBool, "is of type " + type + ", not bool");
      return;
    }
    if (is_arg_reduction(expr.op)) {
      require(expr.type == Type::kInt64, "is of type " + type + ", not int64");
      return;
    }
    require(operand_type == expr.type,
            "is of type " + type + " but its arguments are " + name_of(operand_type));
    if (is_logical(expr.op)) {
      require(!is_floating(expr.type), "is of a floating type");
    } else if (is_shift(expr.op)) {
      require(is_integer(expr.type), "is of no integer type");
    } else if (expr.op == Op::kReduceAnd || expr.op == Op::kReduceOr) {
      require(expr.type == Type::kBool, "is of type " + type + ", not bool");
    } else if (expr.op >= Op::kFma && expr.op <= Op::kCopySign) {
      require(is_floating(expr.type), "is of type " + type + ", not float or double");
    } else if (expr.type == Type::kBool) {
      // As ATen's: + and max are "or", * and min are "and".
      require(expr.op == Op::kAdd || expr.op == Op::kMul || expr.op == Op::kMin ||
                  expr.op == Op::kMax || expr.op == Op::kAbs || expr.op == Op::kSign,
              "does arithmetic on bool; cast to an integer, or use and/or/xor/not");
    }
  }

  void check_store(size_t number) {
    const Store& store = kernel_.stores[number];
    where_ = "store " + std::to_string(number);
    for (ExprId operand : operands_of(store)) {
      check_operand(operand, static_cast<ExprId>(kernel_.exprs.size()));
    }
    check_access(store.buffer, store.access);
    where_ += " to '" + kernel_.buffers[store.buffer].name + "'";
    require(kernel_.buffers[store.buffer].written, "is to a buffer not marked as written");
    require_type(store.expr, kernel_.buffers[store.buffer].type);
    const size_t parallel = kernel_.parallel.size();
    const bool reaches_reduction =
        store.access.strides.size() == parallel + kernel_.reduction.size();
    require(reaches_reduction || store.access.strides.size() == parallel,
            "has " + std::to_string(store.access.strides.size()) +
                " strides, neither one for every dimension nor one for every parallel dimension");
    if (store.predicate != kNoPredicate) require_type(store.predicate, Type::kBool);
    Dimensions varies = 0;
    for (ExprId operand : operands_of(store)) varies |= varying_[operand];
    require(reaches_reduction || (varies & reduction_dimensions(kernel_)) == 0,
            "stores a value that varies along a reduction dimension but has no strides for these");
  }

  const Kernel& kernel_;
  std::string where_;
  std::vector<Dimensions> varying_;
};

}  // namespace

void verify(const Kernel& kernel) {
  Verifier(kernel).run();
}

}  // namespace torch_lazy::codegen
