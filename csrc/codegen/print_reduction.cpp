#include "codegen/print_reduction.h"

#include "codegen/print_expr.h"
#include "codegen/print_jam.h"

namespace torch_lazy::codegen {
namespace {

// "add": the function of two that the reduction repeats.
const char* step_of(Op op) {
  switch (op) {
    case Op::kReduceSum:
      return "add";
    case Op::kReduceProd:
      return "mul";
    case Op::kReduceMin:
    case Op::kReduceArgMin:
      return "min";
    case Op::kReduceMax:
    case Op::kReduceArgMax:
      return "max";
    case Op::kReduceAnd:
      return "and";
    default:
      return "or";
  }
}

// The prelude's function over the lanes of a vector.
const char* over_lanes(Op op) {
  switch (op) {
    case Op::kReduceSum:
      return "lazy_hsum";
    case Op::kReduceProd:
      return "lazy_hprod";
    case Op::kReduceMin:
    case Op::kReduceArgMin:
      return "lazy_hmin";
    case Op::kReduceMax:
    case Op::kReduceArgMax:
      return "lazy_hmax";
    case Op::kReduceAnd:
      return "lazy_hand";
    default:
      return "lazy_hor";
  }
}

int64_t least_integer(Type type) {
  if (type == Type::kUInt8) return 0;
  return -static_cast<int64_t>((uint64_t{1} << (8 * bytes_of(type) - 1)) - 1) - 1;
}

int64_t greatest_integer(Type type) {
  if (type == Type::kUInt8) return 255;
  return static_cast<int64_t>((uint64_t{1} << (8 * bytes_of(type) - 1)) - 1);
}

// What changes no result.
std::string identity_literal(Op op, Type type) {
  switch (op) {
    case Op::kReduceSum:
    case Op::kReduceOr:
      return integer_literal(0, type);
    case Op::kReduceProd:
    case Op::kReduceAnd:
      return integer_literal(1, type);
    case Op::kReduceMin:
    case Op::kReduceArgMin:
      if (!is_floating(type)) return integer_literal(greatest_integer(type), type);
      return std::string("(") + scalar_type(type) + ")__builtin_inff()";
    default:
      if (!is_floating(type)) return integer_literal(least_integer(type), type);
      return std::string("-(") + scalar_type(type) + ")__builtin_inff()";
  }
}

}  // namespace

ReductionPrinter::ReductionPrinter(const PrintContext& context, ExprId reduction, int copies,
                                   bool staged)
    : context_(context), id_(reduction), expr_(context.kernel.exprs[reduction]) {
  const ExprId argument = expr_.arguments[0];
  argument_type_ = context.kernel.exprs[argument].type;
  vector_ = along_lanes() || context.is_vector(argument);
  copies_ = vector_ ? copies : 1;
  staged_ = staged && is_floating_sum(expr_);
}

bool ReductionPrinter::is_arg() const {
  return is_arg_reduction(expr_.op);
}

std::string ReductionPrinter::numbered(const char* family, int copy) const {
  std::string name = family + std::to_string(id_);
  return copies_ > 1 ? name + "_" + std::to_string(copy) : name;
}

std::string ReductionPrinter::kept(const char* family, int copy) const {
  return numbered(family, copy) + (context_.is_jammed() ? "[step]" : "");
}

void ReductionPrinter::declare_kept(Type type, const char* family, int copy,
                                    const std::string& value, SourceWriter& out) const {
  if (!context_.is_jammed()) {
    out.line(declared_type(type) + " " + kept(family, copy) + " = " + value + ";");
    return;
  }
  out.line(declared_type(type) + " " + numbered(family, copy) + "[" +
           std::to_string(context_.kernel.jam.steps) + "];");
  open_steps(context_, out);
  out.line(kept(family, copy) + " = " + value + ";");
  out.close();
}

std::string ReductionPrinter::accumulator(int copy) const {
  return kept("a", copy);
}

std::string ReductionPrinter::index(int copy) const {
  return kept("x", copy);
}

std::string ReductionPrinter::identity() const {
  const std::string literal = identity_literal(expr_.op, argument_type_);
  if (!vector_) return literal;
  return context_.call(std::string("lazy_splat_") + scalar_type(argument_type_), {literal});
}

std::string ReductionPrinter::combine(const std::string& a, const std::string& b) const {
  return call(std::string("lazy_") + step_of(expr_.op), argument_type_, {a, b});
}

std::string ReductionPrinter::declared_type(Type type) const {
  return value_type(type, vector_);
}

std::string ReductionPrinter::call(const std::string& function, Type type,
                                   const std::vector<std::string>& arguments) const {
  return context_.call(function, declared_type(type), arguments);
}

std::string ReductionPrinter::indices(const std::string& first) const {
  if (!vector_) return first;
  if (along_lanes()) return lane_indices(context_, first);
  return context_.call("lazy_splat_int64", {first});
}

void ReductionPrinter::declare(const std::string& first_index, SourceWriter& out) const {
  for (int copy = 0; copy < copies_; ++copy) {
    if (staged_) {
      if (along_lanes() && copy > 0) break;  // a block's copies are combined at its end
      for (const char* family : {"c", "e"}) {
        declare_kept(argument_type_, family, copy, identity(), out);
      }
      continue;
    }
    declare_kept(argument_type_, "a", copy, identity(), out);
    if (is_arg()) declare_kept(Type::kInt64, "x", copy, indices(first_index), out);
  }
}

void ReductionPrinter::begin_block(SourceWriter& out) const {
  if (!staged_) return;
  for (int copy = 0; copy < copies_; ++copy)
    declare_kept(argument_type_, "a", copy, identity(), out);
}

void ReductionPrinter::end_block(SourceWriter& out) const {
  if (!staged_) return;
  if (context_.is_jammed()) open_steps(context_, out);
  if (along_lanes()) {
    add_block(over_copies(), 0, out);
  } else {
    for (int copy = 0; copy < copies_; ++copy) add_block(accumulator(copy), copy, out);
  }
  if (context_.is_jammed()) out.close();
}

// Along the lanes, of all copies.
std::string ReductionPrinter::result_of_loop(int copy) const {
  if (staged_) return staged_result(copy);
  return along_lanes() ? over_copies() : accumulator(copy);
}

std::string ReductionPrinter::result_of_step(int copy) const {
  return goes_step_by_step(context_) ? kept("k", copy) : result_of_loop(copy);
}

void ReductionPrinter::set_aside(SourceWriter& out) const {
  const int results = along_lanes() ? 1 : copies_;
  for (int copy = 0; copy < results; ++copy)
    out.line(declared_type(argument_type_) + " " + numbered("k", copy) + "[" +
             std::to_string(context_.kernel.jam.steps) + "];");
  open_steps(context_, out);
  for (int copy = 0; copy < results; ++copy)
    out.line(kept("k", copy) + " = " + result_of_loop(copy) + ";");
  out.close();
}

// All copies' accumulators in one.
std::string ReductionPrinter::over_copies() const {
  std::string all = accumulator(0);
  for (int copy = 1; copy < copies_; ++copy) all = combine(all, accumulator(copy));
  return all;
}

// Knuth's exact sum of two: what c + block loses in rounding is added to e.
void ReductionPrinter::add_block(const std::string& block, int copy, SourceWriter& out) const {
  const std::string sum = kept("c", copy);
  const std::string lost = kept("e", copy);
  const std::string added = numbered("b", copy);
  const std::string next = numbered("n", copy);
  const std::string taken = numbered("z", copy);
  const std::string type = "const " + declared_type(argument_type_) + " ";
  const auto add = [&](const std::string& a, const std::string& b) { return combine(a, b); };
  const auto sub = [&](const std::string& a, const std::string& b) {
    return call("lazy_sub", argument_type_, {a, b});
  };
  out.line(type + added + " = " + block + ";");
  out.line(type + next + " = " + add(sum, added) + ";");
  out.line(type + taken + " = " + sub(next, sum) + ";");
  out.line(lost + " = " + add(lost, add(sub(sum, sub(next, taken)), sub(added, taken))) + ";");
  out.line(sum + " = " + next + ";");
}

// Of a sum that is not finite, e is NaN and means nothing.
std::string ReductionPrinter::staged_result(int copy) const {
  const std::string sum = kept("c", copy);
  const std::string lost = kept("e", copy);
  return call("lazy_select", argument_type_,
              {call("lazy_is_nan", argument_type_, {lost}), sum, combine(sum, lost)});
}

void ReductionPrinter::accumulate(const Body& body, const std::string& flat_index,
                                  SourceWriter& out) const {
  // A scalar is accumulated once, not once a copy.
  if (!vector_ && body.copy > 0) return;
  if (context_.is_added_product(expr_.arguments[0])) {
    accumulate_product(body, out);
    return;
  }
  std::string value = read(context_, expr_.arguments[0], body, vector_);
  if (is_arg()) {
    accumulate_arg(body, value, indices(flat_index), out);
    return;
  }
  if (along_lanes() && body.is_masked()) {
    const std::string inside = context_.call("lazy_lanes_below", {"n"});
    value = call("lazy_select", argument_type_, {inside, value, identity()});
  }
  out.line(accumulator(body.copy) + " = " + combine(accumulator(body.copy), value) + ";");
}

void ReductionPrinter::accumulate_product(const Body& body, SourceWriter& out) const {
  const std::string sum = accumulator(body.copy);
  std::vector<std::string> operands;
  for (const ExprId factor : context_.kernel.exprs[expr_.arguments[0]].arguments)
    operands.push_back(read_vector(context_, factor, body));
  operands.push_back(sum);
  std::string next = call("lazy_fma", argument_type_, operands);
  if (along_lanes() && body.is_masked()) {
    const std::string inside = context_.call("lazy_lanes_below", {"n"});
    next = call("lazy_select", argument_type_, {inside, next, sum});
  }
  out.line(sum + " = " + next + ";");
}

void ReductionPrinter::accumulate_arg(const Body& body, const std::string& value,
                                      const std::string& at, SourceWriter& out) const {
  const std::string best = accumulator(body.copy);
  const std::string where = index(body.copy);
  const char* better = expr_.op == Op::kReduceArgMax ? "lazy_greater" : "lazy_less";
  std::string takes = call(better, argument_type_, {value, best});
  if (is_floating(argument_type_)) {
    const std::string is_nan = call("lazy_is_nan", argument_type_, {value});
    const std::string was_nan = call("lazy_is_nan", argument_type_, {best});
    const std::string first_nan =
        call("lazy_and", Type::kBool, {is_nan, call("lazy_not", Type::kBool, {was_nan})});
    takes = call("lazy_or", Type::kBool, {takes, first_nan});
  }
  if (along_lanes() && body.is_masked()) {
    takes = call("lazy_and", Type::kBool, {takes, context_.call("lazy_lanes_below", {"n"})});
  }
  const std::string taken = numbered("b", body.copy);
  out.line("const " + declared_type(Type::kBool) + " " + taken + " = " + takes + ";");
  out.line(where + " = " + call("lazy_select", Type::kInt64, {taken, at, where}) + ";");
  out.line(best + " = " + call("lazy_select", argument_type_, {taken, value, best}) + ";");
}

void ReductionPrinter::finish(SourceWriter& out) const {
  if (along_lanes()) {
    if (is_arg()) {
      finish_arg(out);
      return;
    }
    print_scalar(context_, id_, call(over_lanes(expr_.op), argument_type_, {result_of_step(0)}),
                 out);
    return;
  }
  for (int copy = 0; copy < copies_; ++copy) {
    std::string result = result_of_step(copy);
    if (is_arg()) result = index(copy);
    if (!vector_) {
      print_scalar(context_, id_, result, out);
    } else {
      out.line("const " + declared_type(expr_.type) + " " +
               read_vector(context_, id_, Body{copy, copies_, false}) + " = " + result + ";");
    }
  }
}

// The least index among the lanes that hold the best value of all; a NaN, if any lane has one, is
// the best and equals nothing.
void ReductionPrinter::finish_arg(SourceWriter& out) const {
  const std::string splat = std::string("lazy_splat_") + scalar_type(argument_type_);
  const std::string of_all = call(over_lanes(expr_.op), argument_type_, {accumulator(0)});
  print_scalar(context_, id_,
               call("lazy_hmin", Type::kInt64, {candidates(context_.call(splat, {of_all}))}), out);
}

std::string ReductionPrinter::candidates(const std::string& best) const {
  const std::string own = accumulator(0);
  std::string holds = call("lazy_equal", argument_type_, {own, best});
  if (is_floating(argument_type_)) {
    const std::string is_nan = call("lazy_is_nan", argument_type_, {own});
    holds = call("lazy_or", Type::kBool, {holds, is_nan});
  }
  const std::string none = context_.call(
      "lazy_splat_int64", {integer_literal(greatest_integer(Type::kInt64), Type::kInt64)});
  return call("lazy_select", Type::kInt64, {holds, index(0), none});
}

Fold ReductionPrinter::fold() const {
  Fold fold;
  fold.name = "f" + std::to_string(id_);
  fold.shared = "g" + std::to_string(id_);
  fold.type = argument_type_;
  fold.value = result_of_loop(0);
  fold.identity = identity_literal(expr_.op, argument_type_);
  fold.of_warp = over_lanes(expr_.op);
  fold.of_two = std::string("lazy_") + step_of(expr_.op);
  return fold;
}

Fold ReductionPrinter::fold_of_indices() const {
  Fold fold;
  fold.name = "h" + std::to_string(id_);
  fold.shared = "gh" + std::to_string(id_);
  fold.type = Type::kInt64;
  fold.value = candidates("f" + std::to_string(id_));
  fold.identity = integer_literal(greatest_integer(Type::kInt64), Type::kInt64);
  fold.of_warp = "lazy_hmin";
  fold.of_two = "lazy_min";
  return fold;
}

void ReductionPrinter::define(SourceWriter& out) const {
  const std::string result = (is_arg() ? "h" : "f") + std::to_string(id_);
  if (along_lanes() || !vector_) {
    print_scalar(context_, id_, result, out);
  } else {
    out.line("const " + declared_type(expr_.type) + " " +
             read_vector(context_, id_, Body{0, copies_, false}) + " = " + result + ";");
  }
}

}  // namespace torch_lazy::codegen
