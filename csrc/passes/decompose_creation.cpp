// Tensors made of nothing or by copying: constants, ranges, random numbers, fills, casts.

#include "passes/decompose_rules.h"

namespace torch_lazy {
namespace {

// The results hold one number, given as argument `index`.
Rule filled_with_argument(size_t index) {
  return [=](Decomposition& d) { return d.finish(d.full(d.scalar(index), d.output())); };
}

Rule filled_with(int64_t number) {
  return [=](Decomposition& d) { return d.finish(d.full(number, d.output())); };
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
  // Memory that nothing was written to: any values do, the same each time are best.
  for (const char* name :
       {"empty.memory_format", "empty_like", "empty_strided", "new_empty", "new_empty_strided"})
    table[name] = filled_with(0);
  table["fill.Tensor"] = [](Decomposition& d) { return d.finish(d.operand(1, d.output().dtype)); };
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
  table["philox_bernoulli"] = [](Decomposition& d) {
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
