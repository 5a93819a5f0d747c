// Sample calls of reductions and softmax.

#include "decompose_samples.h"

namespace torch_lazy::tests {

namespace {

c10::IValue dims(std::vector<int64_t> values) {
  return values;
}

void add_sums(Samples& all) {
  for (const char* name : {"sum", "mean"}) {
    all[name] =
        over_one({kNone}) + over_one({int64_t(at::kDouble)}) + over_one({int64_t(at::kBFloat16)});
  }
  for (const char* name : {"sum.dim_IntList", "mean.dim", "nansum"})
    all[name] =
        over_one({kNone, false, kNone}) +
        std::vector<Sample>{[=](ScalarType d) {
                              return Arguments{tensor({3, 4, 5}, d), dims({-1}), true, kNone};
                            },
                            [=](ScalarType d) {
                              return Arguments{tensor({3, 4, 5}, d), dims({0, 2}), false, kNone};
                            },
                            [=](ScalarType d) {
                              return Arguments{tensor({3, 0}, d), dims({1}), false, kNone};
                            }};
  all["count_nonzero"] = {[](ScalarType d) {
                            return Arguments{tensor({3, 4}, d), kNone};
                          },
                          [](ScalarType d) {
                            return Arguments{tensor({3, 4}, d), 1};
                          }};
  all["count_nonzero.dim_IntList"] = {[=](ScalarType d) {
    return Arguments{tensor({3, 4}, d), dims({0})};
  }};
  all["prod"] = over_one({kNone});
  all["prod.dim_int"] = {[](ScalarType d) {
                           return Arguments{tensor({3, 4}, d), 1, false, kNone};
                         },
                         [](ScalarType d) {
                           return Arguments{tensor({3, 4}, d), 0, true, int64_t(at::kFloat)};
                         }};
  for (const char* name :
       {"var.correction", "std.correction", "var_mean.correction", "std_mean.correction"})
    for (const c10::IValue& correction : {kNone, c10::IValue(0), c10::IValue(7)})
      for (const bool keepdim : {false, true}) {
        all[name].push_back([=](ScalarType d) {
          return Arguments{tensor({3, 4, 5}, d) + 3, dims({1, 2}), correction, keepdim};
        });
        all[name].push_back([=](ScalarType d) {
          return Arguments{transposed(d), kNone, correction, keepdim};
        });
      }
}

void add_extrema(Samples& all) {
  for (const char* name : {"amax", "amin"})
    all[name] = {[=](ScalarType d) {
                   return Arguments{tensor({3, 4}, d), dims({}), false};
                 },
                 [=](ScalarType d) {
                   return Arguments{tensor({3, 4, 5}, d), dims({0, -1}), true};
                 },
                 [=](ScalarType d) {
                   return Arguments{special(d), dims({0}), false};
                 }};
  for (const char* name : {"max", "min"})
    all[name] = {[](ScalarType d) {
                   return Arguments{tensor({3, 4}, d)};
                 },
                 [](ScalarType d) { return Arguments{special(d)}; },
                 [](ScalarType d) { return Arguments{tensor({}, d)}; }};
  for (const char* name : {"max.dim", "min.dim", "argmax", "argmin"})
    all[name] = {[](ScalarType d) {
                   return Arguments{tensor({3, 4, 5}, d), 1, false};
                 },
                 [](ScalarType d) {
                   return Arguments{transposed(d), -1, true};
                 },
                 [](ScalarType d) {
                   return Arguments{special(d), 0, false};
                 }};
  for (const char* name : {"argmax", "argmin"})
    all[name].push_back([](ScalarType d) { return Arguments{transposed(d), kNone, false}; });
  all["aminmax"] = {[](ScalarType d) {
                      return Arguments{tensor({3, 4}, d), 1, true};
                    },
                    [](ScalarType d) {
                      return Arguments{tensor({3, 4}, d), kNone, false};
                    }};
  for (const std::string name : {"any", "all"}) {
    all[name] = over_one();
    all[name + ".dim"] = {[](ScalarType d) { return Arguments{tensor({3, 4}, d), 1, true}; }};
    all[name + ".dims"] = {[=](ScalarType d) {
                             return Arguments{tensor({3, 4, 2}, d), dims({0, 2}), false};
                           },
                           [=](ScalarType d) {
                             return Arguments{tensor({3, 4}, d), kNone, false};
                           }};
  }
}

void add_norms(Samples& all) {
  for (const c10::IValue& order :
       {c10::IValue(2), c10::IValue(1), c10::IValue(0), c10::IValue(INFINITY),
        c10::IValue(-INFINITY), c10::IValue(3), c10::IValue(0.5)}) {
    all["linalg_vector_norm"].push_back([=](ScalarType d) {
      return Arguments{tensor({3, 4}, d), order, dims({1}), true, kNone};
    });
    all["norm.ScalarOpt_dim"].push_back([=](ScalarType d) {
      return Arguments{tensor({3, 4}, d), order, dims({0}), false};
    });
    all["norm.Scalar"].push_back([=](ScalarType d) { return Arguments{transposed(d), order}; });
    all["norm.ScalarOpt_dtype"].push_back([=](ScalarType d) {
      return Arguments{transposed(d), order, int64_t(at::kFloat)};
    });
    all["norm.ScalarOpt_dim_dtype"].push_back([=](ScalarType d) {
      return Arguments{transposed(d), order, dims({1}), false, int64_t(at::kFloat)};
    });
  }
  all["linalg_vector_norm"].push_back([](ScalarType d) {
    return Arguments{transposed(d), 2, kNone, false, kNone};
  });
  for (const bool keepdim : {false, true}) {
    all["logsumexp"].push_back([=](ScalarType d) {
      return Arguments{tensor({3, 4, 2}, d), dims({0, 2}), keepdim};
    });
    all["logsumexp"].push_back([=](ScalarType d) {
      return Arguments{special(d), dims({0}), keepdim};
    });
  }
}

}  // namespace

void add_reductions(Samples& all) {
  add_sums(all);
  add_extrema(all);
  add_norms(all);
}

void add_softmax(Samples& all) {
  for (const char* name : {"_softmax", "_log_softmax"})
    for (const int64_t dim : {0, 1, -1}) {
      all[name].push_back([=](ScalarType d) {
        return Arguments{tensor({3, 4, 5}, d), dim, false};
      });
      all[name].push_back([=](ScalarType d) { return Arguments{transposed(d), dim, false}; });
      all[name].push_back([=](ScalarType d) { return Arguments{tensor({3, 0}, d), dim, false}; });
    }
  all["_softmax"].push_back([](ScalarType d) { return Arguments{tensor({}, d), 0, false}; });
  all["_safe_softmax"] = {[](ScalarType d) {
    Tensor x = tensor({3, 4}, d);
    x.select(0, 1).fill_(-INFINITY);
    return Arguments{x, 1, kNone};
  }};
  for (const char* name : {"_softmax_backward_data", "_log_softmax_backward_data"})
    for (const int64_t dim : {0, 1, -1})
      all[name].push_back([=](ScalarType d) {
        const Tensor x = tensor({3, 4, 5}, d);
        const bool logarithm = name[1] == 'l';
        return Arguments{tensor({3, 4, 5}, d),
                         logarithm ? at::log_softmax(x, dim) : at::softmax(x, dim), dim,
                         int64_t(d)};
      });
}

}  // namespace torch_lazy::tests
