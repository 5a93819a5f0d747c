// Sums, means, variances, norms, extrema.

#include <cmath>
#include <limits>

#include "passes/decompose_rules.h"
#include "passes/layout.h"

namespace torch_lazy {
namespace {

using c10::ScalarType;

// The argument as the result's dtype says, in the dtype it is summed in.
Term summed(Decomposition& d) {
  return d.tensor(0).to(d.output().dtype).to(d.compute());
}

std::vector<int64_t> all_dims(Decomposition& d) {
  std::vector<int64_t> dims(size_t(d.tensor(0).info().dims()));
  for (size_t i = 0; i < dims.size(); ++i) dims[i] = int64_t(i);
  return dims;
}

// ---- Sums and means ----

bool finish_sum(Decomposition& d, c10::IntArrayRef dims, bool keepdim) {
  return d.finish(sum(summed(d), dims, keepdim));
}

bool finish_mean(Decomposition& d, c10::IntArrayRef dims, bool keepdim) {
  const Term x = d.operand(0, d.compute());
  return d.finish(sum(x, dims, keepdim) / product(x.info().sizes, dims));
}

void add_sum_rules(RuleTable& table) {
  table["sum"] = [](Decomposition& d) { return finish_sum(d, all_dims(d), false); };
  table["sum.dim_IntList"] = [](Decomposition& d) {
    return finish_sum(d, d.dims(1, d.tensor(0).info().dims()), d.boolean(2));
  };
  table["mean"] = [](Decomposition& d) { return finish_mean(d, all_dims(d), false); };
  table["mean.dim"] = [](Decomposition& d) {
    return finish_mean(d, d.dims(1, d.tensor(0).info().dims()), d.boolean(2));
  };
  table["nansum"] = [](Decomposition& d) {
    Term x = summed(d);
    if (c10::isFloatingType(x.dtype())) x = where(test("isnan", x), x.number(0), x);
    return d.finish(sum(x, d.dims(1, d.tensor(0).info().dims()), d.boolean(2)));
  };
  table["count_nonzero.dim_IntList"] = [](Decomposition& d) {
    const Term is_set = d.operand(0, c10::kBool);
    return d.finish(sum(is_set.to(c10::kLong), d.dims(1, is_set.info().dims()), false));
  };
  table["count_nonzero"] = [](Decomposition& d) {
    const Term is_set = d.operand(0, c10::kBool);
    return d.finish(sum(is_set.to(c10::kLong), d.dims(1, is_set.info().dims()), false));
  };
}

// ---- Products ----

Term product_along(Term x, int64_t dim, bool keepdim) {
  GraphBuilder& builder = *x.builder;
  TensorInfo type = x.info();
  if (keepdim)
    type.sizes[size_t(dim)] = 1;
  else
    type.sizes.erase(type.sizes.begin() + dim);
  type.strides = contiguous_strides(type.sizes);
  return {&builder, builder.call("aten::prod", "dim_int",
                                 {x.value, builder.integer(dim), builder.boolean(keepdim),
                                  accumulated_dtype(x)},
                                 type)};
}

void add_product_rules(RuleTable& table) {
  table["prod.dim_int"] = [](Decomposition& d) {
    const Term x = summed(d);
    const auto dims = d.dims(1, x.info().dims());
    if (x.dtype() == c10::kBool || dims.empty()) return false;
    return d.finish(product_along(x, dims[0], d.boolean(2)));
  };
  table["prod"] = [](Decomposition& d) {
    Term x = summed(d);
    if (x.dtype() == c10::kBool) return false;
    for (int64_t dim = x.info().dims(); dim-- > 0;) x = product_along(x, dim, false);
    return d.finish(x);
  };
}

// ---- Variances ----

// In two passes. With a correction beyond the count the divisor is 0, as in eager. ATen's kernels
// for the CPU compute in double.
void add_variance_rules(RuleTable& table) {
  const auto rule = [](bool root, bool with_mean) -> Rule {
    return [=](Decomposition& d) {
      const Term x = d.operand(0, d.output().device.is_cpu() ? c10::kDouble : d.compute());
      const auto dims = d.dims(1, x.info().dims());
      const double correction = d.given(2) ? d.real(2) : 1;
      const int64_t count = product(x.info().sizes, dims);
      const bool keepdim = d.boolean(3);
      const Term mean = sum(x, dims) / count;
      const Term difference = x - mean;
      const double divisor = std::max(0.0, double(count) - correction);
      const Term variance = sum(difference * difference, dims, keepdim) / divisor;
      if (with_mean && d.needed(1)) d.finish(keepdim ? mean : squeeze(mean, dims), 1);
      return d.finish(root ? sqrt(variance) : variance);
    };
  };
  table["var.correction"] = rule(false, false);
  table["std.correction"] = rule(true, false);
  table["var_mean.correction"] = rule(false, true);
  table["std_mean.correction"] = rule(true, true);
}

// ---- Extrema ----

Term index_of_extremum(const char* name, Term x, std::optional<int64_t> dim, bool keepdim) {
  GraphBuilder& builder = *x.builder;
  TensorInfo type = x.info();
  type.dtype = c10::kLong;
  for (int64_t i = type.dims(); i-- > 0;) {
    if (dim && i != *dim) continue;
    if (keepdim)
      type.sizes[size_t(i)] = 1;
    else
      type.sizes.erase(type.sizes.begin() + i);
  }
  type.strides = contiguous_strides(type.sizes);
  return {&builder, builder.call(name, "",
                                 {x.value, dim ? builder.integer(*dim) : builder.none(),
                                  builder.boolean(keepdim)},
                                 type)};
}

// bool is compared as numbers; all other dtypes as they are, bfloat16 and half exactly in float.
Term comparable(Decomposition& d) {
  const Term x = d.tensor(0);
  return x.to(x.dtype() == c10::kBool ? c10::kByte : compute_dtype(x.dtype()));
}

void add_extremum_rules(RuleTable& table) {
  for (const bool greatest : {false, true}) {
    const auto reduce = greatest ? amax : amin;
    const char* const index = greatest ? "aten::argmax" : "aten::argmin";
    const std::string along = greatest ? "max" : "min";
    table[greatest ? "amax" : "amin"] = [=](Decomposition& d) {
      const Term x = comparable(d);
      return d.finish(reduce(x, d.dims(1, x.info().dims()), d.boolean(2)));
    };
    table[along] = [=](Decomposition& d) {
      return d.finish(reduce(comparable(d), all_dims(d), false));
    };
    table[along + ".dim"] = [=](Decomposition& d) {
      const Term x = comparable(d);
      const auto dims = d.dims(1, x.info().dims());
      if (dims.empty()) return false;
      if (d.needed(1)) d.finish(index_of_extremum(index, x, dims[0], d.boolean(2)), 1);
      return !d.needed(0) || d.finish(reduce(x, dims, d.boolean(2)));
    };
    table[greatest ? "argmax" : "argmin"] = [=](Decomposition& d) {
      const Term x = comparable(d);
      const int64_t rank = x.info().dims();
      if (rank == 0) return d.finish(d.full(0, d.output()));
      std::optional<int64_t> dim;
      if (d.given(1)) dim = d.dims(1, rank)[0];
      return d.finish(index_of_extremum(index, x, dim, d.boolean(2)));
    };
  }
  table["aminmax"] = [](Decomposition& d) {
    const Term x = comparable(d);
    const auto dims = d.dims(1, x.info().dims());
    if (d.needed(1)) d.finish(amax(x, dims, d.boolean(2)), 1);
    return !d.needed(0) || d.finish(amin(x, dims, d.boolean(2)));
  };
}

// ---- any and all ----

void add_quantifier_rules(RuleTable& table) {
  for (const std::string name : {"any", "all"}) {
    const auto finish = [name](Decomposition& d, c10::IntArrayRef dims, bool keepdim) {
      const Term x = d.operand(0, c10::kBool);
      if (x.info().dims() == 0) return d.finish(x);
      GraphBuilder& builder = d.builder();
      return d.finish({&builder, builder.reduce(("aten::" + name).c_str(), "dims", x.value, dims,
                                                keepdim, c10::kBool)});
    };
    table[name] = [=](Decomposition& d) { return finish(d, all_dims(d), false); };
    for (const char* overload : {".dim", ".dims"})
      table[name + overload] = [=](Decomposition& d) {
        const bool none = d.given(1) && d.integers(1).empty();  // which is not all here
        if (none) return d.finish(d.operand(0, c10::kBool));
        return finish(d, d.dims(1, d.tensor(0).info().dims()), d.boolean(2));
      };
  }
}

// ---- Norms ----

bool finish_norm(Decomposition& d, double order, c10::IntArrayRef dims, bool keepdim) {
  const Term x = d.operand(0, d.compute());
  if (order == 2) return d.finish(sqrt(sum(x * x, dims, keepdim)));
  if (order == 1) return d.finish(sum(abs(x), dims, keepdim));
  if (order == 0) return d.finish(sum(compare("ne", x, 0).to(x.dtype()), dims, keepdim));
  // Of no elements there is no greatest; ATen has its own answer or error.
  if (std::isinf(order) && product(x.info().sizes, dims) == 0) return false;
  if (std::isinf(order)) return d.finish((order > 0 ? amax : amin)(abs(x), dims, keepdim));
  const Term powers = binary("pow", "Tensor_Tensor", abs(x), x.number(order));
  const Term total = sum(powers, dims, keepdim);
  return d.finish(binary("pow", "Tensor_Tensor", total, total.number(1 / order)));
}

void add_norm_rules(RuleTable& table) {
  const auto order = [](Decomposition& d) { return d.given(1) ? d.real(1) : 2; };
  table["linalg_vector_norm"] = [=](Decomposition& d) {
    return finish_norm(d, order(d), d.dims(2, d.tensor(0).info().dims()), d.boolean(3));
  };
  for (const char* name : {"norm.ScalarOpt_dim", "norm.ScalarOpt_dim_dtype"})
    table[name] = [=](Decomposition& d) {
      return finish_norm(d, order(d), d.dims(2, d.tensor(0).info().dims()), d.boolean(3));
    };
  for (const char* name : {"norm.Scalar", "norm.ScalarOpt_dtype"})
    table[name] = [=](Decomposition& d) { return finish_norm(d, order(d), all_dims(d), false); };
  table["logsumexp"] = [](Decomposition& d) {
    const Term x = d.operand(0, d.compute());
    const auto dims = d.dims(1, x.info().dims());
    if (product(x.info().sizes, dims) == 0) return d.finish(log(sum(exp(x), dims, d.boolean(2))));
    const Term greatest = amax(x, dims);
    const Term finite = where(test("isinf", greatest), x.number(0), greatest);
    const bool keepdim = d.boolean(2);
    const Term total = log(sum(exp(x - finite), dims, keepdim));
    return d.finish(total + (keepdim ? finite : squeeze(finite, dims)));
  };
}

}  // namespace

void add_reduction_rules(RuleTable& table) {
  add_sum_rules(table);
  add_product_rules(table);
  add_variance_rules(table);
  add_extremum_rules(table);
  add_quantifier_rules(table);
  add_norm_rules(table);
}

}  // namespace torch_lazy
