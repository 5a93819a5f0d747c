// Tensors made of nothing or by copying: constants, ranges, random numbers, fills, casts.

#include <optional>

#include "passes/decompose_rules.h"
#include "passes/layout.h"

namespace torch_lazy {
namespace {

// The results hold one number, given as argument `index`.
Rule filled_with_argument(size_t index) {
  return [=](Decomposition& d) { return d.finish(d.full(d.scalar(index), d.output())); };
}

Rule filled_with(int64_t number) {
  return [=](Decomposition& d) { return d.finish(d.full(number, d.output())); };
}

// Memory that nothing was written to: any values do, the same each time are best. Not where
// elements share memory, which a kernel's threads would write at once.
bool left_empty(Decomposition& d) {
  const TensorInfo made = d.output();
  const Layout layout{{made.sizes.begin(), made.sizes.end()},
                      {made.strides.begin(), made.strides.end()}};
  return has_distinct_elements(layout) && d.finish(d.full(0, made));
}

void add_fill_rules(RuleTable& table) {
  table["full"] = filled_with_argument(1);
  table["full_like"] = filled_with_argument(1);
  table["new_full"] = filled_with_argument(2);
  table["fill.Scalar"] = filled_with_argument(1);
  table["scalar_tensor"] = filled_with_argument(0);
  for (const char* name : {"zeros", "zeros_like", "new_zeros", "zero"})
    table[name] = filled_with(0);
  for (const char* name : {"ones", "ones_like", "new_ones"}) table[name] = filled_with(1);
  for (const char* name :
       {"empty.memory_format", "empty_like", "empty_strided", "new_empty", "new_empty_strided"})
    table[name] = left_empty;
  table["fill.Tensor"] = [](Decomposition& d) { return d.finish(d.operand(1, d.output().dtype)); };
}

// Numbers at equal distances from argument 0 to argument 1, as many as argument 2 says; none where
// ATen's kernel would round between its steps. Each half counts from its own end, as there.
std::optional<Term> equally_spaced(Decomposition& d) {
  const TensorInfo type = d.output();
  const int64_t steps = d.integer(2);
  const bool computed = type.dtype == at::kFloat || type.dtype == at::kDouble;
  if (!computed || steps < 2) return std::nullopt;
  const auto rounded = [&](double x) { return type.dtype == at::kFloat ? double(float(x)) : x; };
  const double start = rounded(d.real(0)), end = rounded(d.real(1));
  const double step = rounded(rounded(end - start) / rounded(double(steps - 1)));
  const Term at = d.iota(steps);
  const Term from_start = at.to(type.dtype), from_end = ((steps - 1) - at).to(type.dtype);
  const auto number = [&](double value) { return from_start.number(value); };
  return where(compare("lt", at, steps / 2), multiply_add(number(start), number(step), from_start),
               multiply_add(number(end), number(-step), from_end));
}

bool linspace(Decomposition& d) {
  const std::optional<Term> made = equally_spaced(d);
  return made && d.finish(*made);
}

bool logspace(Decomposition& d) {
  const std::optional<Term> exponents = equally_spaced(d);
  if (!exponents) return false;
  const Term base = exponents->number(d.real(3));
  return d.finish(binary("pow", "Tensor_Tensor", base, *exponents));
}

void add_range_rules(RuleTable& table) {
  // As start_step; half types are computed in float, ATen's result is rounded from it.
  const auto range = [](Decomposition& d, Term start, Term end, Term step) {
    GraphBuilder& builder = d.builder();
    TensorInfo type = d.output();
    type.dtype = d.compute();
    auto* const no = builder.none();
    const Term made{&builder, builder.call("aten::arange", "start_step",
                                           {start.value, end.value, step.value,
                                            builder.integer(int64_t(type.dtype)), no,
                                            builder.device_argument(type.device), no},
                                           type)};
    return d.finish(made);
  };
  table["arange"] = [=](Decomposition& d) {
    GraphBuilder& builder = d.builder();
    return range(d, {&builder, builder.integer(0)}, d.tensor(0), {&builder, builder.integer(1)});
  };
  table["arange.start"] = [=](Decomposition& d) {
    GraphBuilder& builder = d.builder();
    return range(d, d.tensor(0), d.tensor(1), {&builder, builder.integer(1)});
  };
  table["linspace"] = linspace;
  table["logspace"] = logspace;
  table["arange.start_step"] = [=](Decomposition& d) {
    return range(d, d.tensor(0), d.tensor(1), d.tensor(2));
  };
}

void add_copy_rules(RuleTable& table) {
  const Rule copy = [](Decomposition& d) { return d.finish(d.tensor(0)); };
  for (const char* name : {"_to_copy", "clone", "lift_fresh_copy", "detach_copy", "alias_copy"})
    table[name] = copy;
  table["copy"] = [](Decomposition& d) { return d.finish(d.tensor(1)); };
}

void add_random_rules(RuleTable& table) {
  // Elements count in the order of sizes, whatever the layout.
  table["philox_bernoulli"] = table["philox_mask"] = [](Decomposition& d) {
    GraphBuilder& builder = d.builder();
    const TensorInfo result = d.output();
    if (result.elements() == 0) return d.finish(d.full(0, result));
    const Term position =
        view(d.iota(result.elements()), result.sizes, contiguous_strides(result.sizes));
    const Term uniform{&builder,
                       builder.pointwise("torch_lazy::philox_uniform", "",
                                         {position.value, d.tensor(1).value}, c10::kFloat)};
    return d.finish(compare("lt", uniform, d.real(2)));
  };
}

}  // namespace

void add_creation_rules(RuleTable& table) {
  add_random_rules(table);
  add_fill_rules(table);
  add_range_rules(table);
  add_copy_rules(table);
}

}  // namespace torch_lazy
