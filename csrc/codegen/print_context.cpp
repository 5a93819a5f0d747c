#include "codegen/print_context.h"

#include <algorithm>

#include "codegen/packet_access.h"

namespace torch_lazy::codegen {
namespace {

// Which reads of an expression are of a scalar and which of a vector, given that of its reader.
class Readers {
 public:
  explicit Readers(PrintContext& context) : context_(context) {
    const Kernel& kernel = context.kernel;
    context.as_scalars.assign(kernel.exprs.size(), false);
    context.as_vectors.assign(kernel.exprs.size(), false);
    for (const auto& row : context.schedule.rows) {
      for (ExprId id : row) add_expr(id);
    }
    for (const Sweep& sweep : context.schedule.sweeps) {
      for (ExprId id : sweep.exprs) add_expr(id);
    }
    for (const Store& store : kernel.stores) add_store(store);
  }

 private:
  void add(ExprId id, bool as_vector) {
    if (!context_.is_vector(id)) (as_vector ? context_.as_vectors : context_.as_scalars)[id] = true;
  }

  // A scalar index moves the address of all lanes, in scalar arithmetic.
  void add_access(const Access& access) {
    for (const auto& indirect : access.indirect) add(indirect.index, false);
  }

  void add_expr(ExprId id) {
    const Expr& expr = context_.kernel.exprs[id];
    add_access(expr.access);
    const bool vector = is_reduction(expr.op) ? accumulates_vectors(expr) : context_.is_vector(id);
    if (expr.predicate != kNoPredicate) add(expr.predicate, vector);
    if (compares_lane_index(context_, id)) return add(expr.arguments[1], false);
    for (ExprId argument : expr.arguments) add(argument, vector);
  }

  bool accumulates_vectors(const Expr& reduction) const {
    return context_.kernel.axis == Axis::kReduction || context_.is_vector(reduction.arguments[0]);
  }

  void add_store(const Store& store) {
    add_access(store.access);
    const bool vector = is_vector_store(context_, store);
    if (store.predicate != kNoPredicate) add(store.predicate, vector);
    add(store.expr, vector);
  }

  PrintContext& context_;
};

std::string name_of_value(const PrintContext& context, ExprId id) {
  const Expr& expr = context.kernel.exprs[id];
  return std::to_string(id) + "_" +
         (expr.op == Op::kLoad ? context.kernel.buffers[expr.buffer].name : name_of(expr.op)) +
         (context.by_steps[id] ? "[step]" : "");
}

// What is known when a work item begins, of each of its jammed steps, and read in a loop. Otherwise
// it would be evaluated in each iteration: loops over steps are written out after what is invariant
// has left the loops around them.
std::vector<bool> values_by_steps(const PrintContext& context) {
  std::vector<bool> by_steps(context.kernel.exprs.size());
  if (!context.is_jammed()) return by_steps;
  const auto add_operands = [&](ExprId reader) {
    for (const ExprId operand : operands_of(context.kernel.exprs[reader]))
      if (context.is_work_item_scalar(operand) && context.varies_by_step(operand))
        by_steps[operand] = true;
  };
  for (const Sweep& sweep : context.schedule.sweeps) {
    std::ranges::for_each(sweep.exprs, add_operands);
    std::ranges::for_each(sweep.reductions, add_operands);
  }
  return by_steps;
}

}  // namespace

bool PrintContext::is_vector(ExprId id) const {
  return lane_dimension != kNoDimension &&
         (schedule.varying[id] & dimension_bit(lane_dimension)) != 0;
}

bool compares_lane_index(const PrintContext& context, ExprId id) {
  const Expr& expr = context.kernel.exprs[id];
  if (expr.op != Op::kLess && expr.op != Op::kGreaterEqual) return false;
  const Expr& index = context.kernel.exprs[expr.arguments[0]];
  return !context.is_cuda() && index.op == Op::kIndex &&
         index.dimension == context.lane_dimension && !context.is_vector(expr.arguments[1]);
}

std::string PrintContext::call(const std::string& function,
                               const std::vector<std::string>& arguments) const {
  functions.insert(function);
  std::string text;
  for (const std::string& argument : arguments) text += (text.empty() ? "" : ", ") + argument;
  return function.substr(0, function.find(':')) + "(" + text + ")";
}

std::string PrintContext::call(const std::string& function, const std::string& overload,
                               const std::vector<std::string>& arguments) const {
  // On CUDA a vector's type is that of its lane.
  const bool same = is_cuda() && overload.starts_with("v_");
  return call(function + ":" + (same ? overload.substr(2) : overload), arguments);
}

bool PrintContext::varies_by_step(ExprId id) const {
  return is_jammed() && (schedule.varying[id] & dimension_bit(size_t(kernel.jam.dimension))) != 0;
}

bool PrintContext::varies_by_step(const Access& access) const {
  return is_jammed() && (varying_dimensions(access, schedule.varying) &
                         dimension_bit(size_t(kernel.jam.dimension))) != 0;
}

bool PrintContext::is_square(ExprId load) const {
  return is_jammed() && kernel.jam.steps == target.lanes && kernel.reduction.empty() &&
         is_square_load(kernel, load, size_t(kernel.jam.dimension));
}

bool PrintContext::is_added_product(ExprId id) const {
  const Expr& product = kernel.exprs[id];
  if (!is_jammed() || !target.has_fma() || product.op != Op::kMul || !is_floating(product.type) ||
      !is_vector(id))
    return false;
  const auto reads_it = [&](const auto& reader) {
    const std::vector<ExprId> operands = operands_of(reader);
    return std::find(operands.begin(), operands.end(), id) != operands.end();
  };
  return std::all_of(kernel.exprs.begin(), kernel.exprs.end(),
                     [&](const Expr& expr) { return !reads_it(expr) || is_floating_sum(expr); }) &&
         std::none_of(kernel.stores.begin(), kernel.stores.end(), reads_it);
}

bool PrintContext::is_transposed(ExprId load) const {
  return transposes() &&
         is_transposed_load(kernel, load, size_t(kernel.thread_loop.transposed), schedule.varying);
}

bool PrintContext::is_packet(ExprId load) const {
  return has_packets() && is_vector(load) && is_packet_load(kernel, load, schedule.varying);
}

bool PrintContext::is_packet(const Store& store) const {
  return has_packets() && is_packet_store(kernel, store, schedule.varying);
}

bool PrintContext::is_rounded_by_stores(ExprId cast) const {
  const Expr& expr = kernel.exprs[cast];
  if (!has_packets() || expr.op != Op::kCast || !is_vector(cast)) return false;
  if (expr.type != Type::kBFloat16 && expr.type != Type::kHalf) return false;
  if (kernel.exprs[expr.arguments[0]].type != Type::kFloat || schedule.scratch_places[cast] >= 0)
    return false;
  const auto reads = [&](const auto& reader) {
    const std::vector<ExprId> operands = operands_of(reader);
    return std::find(operands.begin(), operands.end(), cast) != operands.end();
  };
  return std::none_of(kernel.exprs.begin(), kernel.exprs.end(), reads) &&
         std::all_of(kernel.stores.begin(), kernel.stores.end(), [&](const Store& store) {
           return !reads(store) ||
                  (is_packet(store) && kernel.buffers[store.buffer].type == expr.type);
         });
}

bool PrintContext::is_work_item_scalar(ExprId id) const {
  return !is_vector(id) && schedule.levels[id] == 0 &&
         (schedule.varying[id] & reduction_dimensions(kernel)) == 0;
}

bool is_vector_store(const PrintContext& context, const Store& store) {
  if (context.lane_dimension == kNoDimension) return false;
  Dimensions varies = varying_dimensions(store.access, context.schedule.varying);
  for (ExprId operand : operands_of(store)) varies |= context.schedule.varying[operand];
  return (varies & dimension_bit(context.lane_dimension)) != 0;
}

PrintContext make_context(const Kernel& kernel, const Target& target, const Schedule& schedule,
                          std::set<std::string>& functions) {
  PrintContext context{kernel, target, schedule, lane_dimension(kernel), {}, {}, {}, functions};
  Readers readers(context);
  context.by_steps = values_by_steps(context);
  return context;
}

std::string value_type(Type type, bool vector) {
  return vector ? vector_type(type) : scalar_type(type);
}

const char* scalar_type(Type type) {
  switch (type) {
    case Type::kBool:
      return "bool";
    case Type::kFloat8E4M3FN:
    case Type::kFloat8E5M2:
    case Type::kBFloat16:
    case Type::kHalf:
      return "float";
    default:
      return name_of(type);
  }
}

const char* vector_type(Type type) {
  switch (type) {
    case Type::kBool:
      return "v_bool";
    case Type::kUInt8:
      return "v_uint8";
    case Type::kInt8:
      return "v_int8";
    case Type::kInt16:
      return "v_int16";
    case Type::kInt32:
      return "v_int32";
    case Type::kInt64:
      return "v_int64";
    case Type::kFloat8E4M3FN:
    case Type::kFloat8E5M2:
    case Type::kBFloat16:
    case Type::kHalf:
    case Type::kFloat:
      return "v_float";
    case Type::kDouble:
      return "v_double";
  }
  return "";
}

const char* storage_type(Type type) {
  switch (type) {
    case Type::kBool:
    case Type::kFloat8E4M3FN:
    case Type::kFloat8E5M2:
      return "uint8";
    case Type::kBFloat16:
    case Type::kHalf:
      return "unsigned short";
    default:
      return name_of(type);
  }
}

std::string name_of_size(Size size) {
  return size.slot ? "s" + std::to_string(size.value) : std::to_string(size.value);
}

std::string name_of_index(const PrintContext& context, size_t dimension) {
  if (dimension == context.lane_dimension) return "i";
  const size_t parallel = context.kernel.parallel.size();
  return dimension < parallel ? "p" + std::to_string(dimension)
                              : "r" + std::to_string(dimension - parallel);
}

std::string name_of_scalar(const PrintContext& context, ExprId id) {
  return "t" + name_of_value(context, id);
}

std::string name_of_splat(const PrintContext& context, ExprId id) {
  return "v" + name_of_value(context, id);
}

std::string name_of_square(const PrintContext& context, ExprId load) {
  return "x" + std::to_string(load) + "_" +
         context.kernel.buffers[context.kernel.exprs[load].buffer].name;
}

std::string name_of_loaded_packet(const PrintContext& context, ExprId load) {
  return "u" + std::to_string(load) + "_" +
         context.kernel.buffers[context.kernel.exprs[load].buffer].name;
}

std::string name_of_stored_packet(const PrintContext& context, const Store& store) {
  const auto number = &store - context.kernel.stores.data();
  return "w" + std::to_string(number) + "_" + context.kernel.buffers[store.buffer].name;
}

std::string read_vector(const PrintContext& context, ExprId id, const Body& body) {
  if (!context.is_vector(id)) return name_of_splat(context, id);
  std::string name = name_of_scalar(context, id);
  if (body.copies > 1) name += "_" + std::to_string(body.copy);
  return name;
}

std::string read(const PrintContext& context, ExprId id, const Body& body, bool as_vector) {
  return as_vector ? read_vector(context, id, body) : name_of_scalar(context, id);
}

std::string lane_index(const PrintContext& context, const Body& body) {
  if (body.copy == 0) return "i";
  return "i + " + std::to_string(body.copy * context.target.lanes);
}

std::string product(const std::string& index, Size stride) {
  if (stride.is(0)) return {};
  if (stride.is(1)) return index;
  const bool is_sum = index.find(' ') != std::string::npos;
  return (is_sum ? "(" + index + ")" : index) + " * " + name_of_size(stride);
}

}  // namespace torch_lazy::codegen
