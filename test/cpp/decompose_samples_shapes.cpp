// Sample calls of operators that make tensors and that rearrange them.

#include "decompose_samples.h"

namespace torch_lazy::tests {

void add_creation(Samples& all) {
  const auto like = [](ScalarType d) { return transposed(d); };
  all["philox_bernoulli"] = {
      [=](ScalarType d) {
        return Arguments{like(d), at::scalar_tensor(99, at::kLong), 0.4};
      },
      [=](ScalarType d) {
        return Arguments{at::zeros({0, 3}, d), at::scalar_tensor(99, at::kLong), 0.4};
      }};
  all["philox_mask"] = all["philox_bernoulli"];
  const std::vector<int64_t> sizes{2, 3}, strides{1, 2};
  all["full"] = {
      [=](ScalarType d) { return Arguments{sizes, 2, int64_t(d), kNone, kNone, kNone}; }};
  all["full_like"] = {
      [=](ScalarType d) { return Arguments{like(d), 2.5, kNone, kNone, kNone, kNone, kNone}; }};
  all["new_full"] = {
      [=](ScalarType d) { return Arguments{like(d), sizes, 2, kNone, kNone, kNone, kNone}; }};
  all["fill.Scalar"] = over_one({3});
  all["fill.Tensor"] = {[=](ScalarType d) {
                          return Arguments{like(d), at::scalar_tensor(2.5)};
                        },
                        [=](ScalarType d) {
                          return Arguments{like(d), wrapped(3)};
                        }};
  all["scalar_tensor"] = {[=](ScalarType d) {
    return Arguments{3, int64_t(d), kNone, kNone, kNone};
  }};
  for (const char* name : {"zeros", "ones"})
    all[name] = {[=](ScalarType d) { return Arguments{sizes, int64_t(d), kNone, kNone, kNone}; }};
  for (const char* name : {"zeros_like", "ones_like"})
    all[name] = over_one({kNone, kNone, kNone, kNone, kNone});
  for (const char* name : {"new_zeros", "new_ones"})
    all[name] = {
        [=](ScalarType d) { return Arguments{like(d), sizes, kNone, kNone, kNone, kNone}; }};
  all["arange"] = {[](ScalarType d) { return Arguments{5, int64_t(d), kNone, kNone, kNone}; }};
  all["arange.start"] = {
      [](ScalarType d) { return Arguments{-2, 5, int64_t(d), kNone, kNone, kNone}; }};
  all["arange.start_step"] = {
      [](ScalarType d) { return Arguments{-2, 50, 7, int64_t(d), kNone, kNone, kNone}; },
      [](ScalarType d) { return Arguments{0.5, -3.0, -0.3, int64_t(d), kNone, kNone, kNone}; }};
  all["linspace"] = {
      [](ScalarType d) { return Arguments{-1.5, 2.25, 7, int64_t(d), kNone, kNone, kNone}; },
      [](ScalarType d) { return Arguments{3, -8, 40, int64_t(d), kNone, kNone, kNone}; },
      [](ScalarType d) { return Arguments{3, 8, 1, int64_t(d), kNone, kNone, kNone}; }};
  all["logspace"] = {
      [](ScalarType d) { return Arguments{0.5, -2.0, 7, 10.0, int64_t(d), kNone, kNone, kNone}; },
      [](ScalarType d) { return Arguments{0, 3, 6, 2.0, int64_t(d), kNone, kNone, kNone}; }};
  for (const ScalarType to : {at::kFloat, at::kBool, at::kInt, at::kBFloat16, at::kDouble})
    all["_to_copy"] =
        all["_to_copy"] + std::vector<Sample>{[=](ScalarType d) {
          return Arguments{transposed(d), int64_t(to), kNone, kNone, kNone, false, kNone};
        }};
  all["clone"] = over_one({kNone});
  all["copy"] = {[=](ScalarType d) {
                   return Arguments{like(d), tensor({4}, at::kFloat), false};
                 },
                 [=](ScalarType d) {
                   return Arguments{tensor({3}, d), tensor({}, d), false};
                 }};
}

namespace {

c10::IValue list(const std::vector<int64_t>& values) {
  return values;
}

c10::IValue tensors(const std::vector<Tensor>& values) {
  return values;
}

void add_joined(Samples& all) {
  all["cat"] = {[=](ScalarType d) {
                  return Arguments{tensors({tensor({2, 3}, d), transposed(d).slice(1, 0, 3)}), 0};
                },
                [=](ScalarType d) {
                  return Arguments{tensors({tensor({2, 3}, d), tensor({2, 1}, at::kFloat)}), -1};
                },
                [=](ScalarType d) {
                  return Arguments{tensors({tensor({0}, d), tensor({2, 3}, d)}), 1};
                }};
  all["stack"] = {
      [=](ScalarType d) {
        return Arguments{tensors({tensor({2, 3}, d), sliced(d).slice(0, 0, 2).slice(1, 1, 4)}), 1};
      },
      [=](ScalarType d) {
        return Arguments{tensors({tensor({2}, d), tensor({2}, d)}), -1};
      }};
  all["roll"] = {[=](ScalarType d) {
                   return Arguments{tensor({3, 4}, d), list({1, -5}), list({0, -1})};
                 },
                 [=](ScalarType d) {
                   return Arguments{transposed(d), list({2, 1, 1}), list({0, 1, 0})};
                 },
                 [=](ScalarType d) {
                   return Arguments{tensor({3, 4}, d), list({-3}), list({})};
                 },
                 [=](ScalarType d) {
                   return Arguments{sliced(d), list({0}), list({1})};
                 }};
  all["repeat"] = {[=](ScalarType d) {
                     return Arguments{transposed(d).unsqueeze(1), list({1, 3, 1})};
                   },
                   [=](ScalarType d) {
                     return Arguments{tensor({3}, d), list({2, 1})};
                   },
                   [=](ScalarType d) {
                     return Arguments{sliced(d), list({2, 3, 1})};
                   },
                   [=](ScalarType d) {
                     return Arguments{tensor({2, 3}, d), list({2, 2})};
                   },
                   [=](ScalarType d) {
                     return Arguments{tensor({}, d), list({0, 2})};
                   }};
  all["constant_pad_nd"] = {[=](ScalarType d) {
                              return Arguments{tensor({3, 4}, d), list({1, 2}), 2};
                            },
                            [=](ScalarType d) {
                              return Arguments{sliced(d), list({-1, 2, 1, -1}), 0.5};
                            }};
  for (const char* name : {"tril", "triu"})
    all[name] = {[](ScalarType d) {
                   return Arguments{tensor({3, 4}, d), 0};
                 },
                 [](ScalarType d) {
                   return Arguments{tensor({2, 4, 3}, d), -1};
                 },
                 [](ScalarType d) {
                   return Arguments{special(d).expand({4, -1}), 1};
                 }};
}

void add_diagonals(Samples& all) {
  all["eye"] = {[](ScalarType d) { return Arguments{3, int64_t(d), kNone, kNone, kNone}; }};
  all["eye.m"] = {[](ScalarType d) { return Arguments{2, 4, int64_t(d), kNone, kNone, kNone}; }};
  all["diag_embed"] = {[](ScalarType d) {
                         return Arguments{tensor({2, 3}, d), 0, -2, -1};
                       },
                       [](ScalarType d) {
                         return Arguments{sliced(d), 0, -2, -1};
                       },
                       [](ScalarType d) {
                         return Arguments{tensor({3}, d), 1, 0, 1};
                       }};
}

void add_one_hot(Samples& all) {
  const auto classes = [](c10::IntArrayRef sizes) { return at::randint(0, 5, sizes, at::kLong); };
  all["one_hot_of_classes"] = {[=](ScalarType) {
                                 return Arguments{classes({3}), 5};
                               },
                               [=](ScalarType) {
                                 return Arguments{classes({4, 2}).t(), 7};
                               },
                               [=](ScalarType) {
                                 return Arguments{classes({}), 5};
                               }};
}

void add_indexed(Samples& all) {
  // At dimension `dim`, behind nothing.
  const auto at_dim = [](size_t dim, const Tensor& indices) {
    c10::List<std::optional<Tensor>> list;
    for (size_t i = 0; i < dim; ++i) list.push_back(std::nullopt);
    list.push_back(indices);
    return list;
  };
  const auto within = [](int64_t size, c10::IntArrayRef sizes, ScalarType dtype = at::kLong) {
    return at::randint(-size, size, sizes, dtype);
  };
  all["index.Tensor"] = {
      [=](ScalarType d) {
        return Arguments{tensor({3, 4}, d), at_dim(0, within(3, {5}))};
      },
      [=](ScalarType d) {
        return Arguments{sliced(d), at_dim(1, within(4, {2, 3}))};
      },
      [=](ScalarType d) {
        return Arguments{tensor({2, 3, 4}, d), at_dim(2, within(4, {3}, at::kInt))};
      },
      [=](ScalarType d) {
        return Arguments{tensor({7}, d), at_dim(0, within(7, {}))};
      }};
  // Masks, with values that are the same for all that they select.
  const auto put_by_mask = [&](bool accumulate) -> std::vector<Sample> {
    return {
        [=](ScalarType d) {
          return Arguments{tensor({3, 4}, d), at_dim(0, mask({3, 4})), tensor({}, d), accumulate};
        },
        [=](ScalarType d) {
          return Arguments{transposed(d), at_dim(0, mask({5})), tensor({4}, d), accumulate};
        },
        [=](ScalarType d) {
          return Arguments{sliced(d), at_dim(1, mask({4})), tensor({5, 1}, d), accumulate};
        },
        [=](ScalarType d) {
          return Arguments{tensor({2, 3, 4}, d), at_dim(0, mask({2, 3})), tensor({1, 4}, d),
                           accumulate};
        }};
  };
  all["index_put"] = put_by_mask(false) + put_by_mask(true);
}

void add_taken_apart(Samples& all) {
  all["slice_backward"] = {
      [=](ScalarType d) {
        return Arguments{tensor({3, 2}, d), list({3, 6}), 1, 1, 5, 2};
      },
      [=](ScalarType d) {
        return Arguments{tensor({2, 6}, d), list({3, 6}), 0, -2, 9223372036854775807, 1};
      }};
  all["select_backward"] = {[=](ScalarType d) {
    return Arguments{tensor({3}, d), list({3, 6}), 1, -2};
  }};
  all["diagonal_backward"] = {[=](ScalarType d) {
                                return Arguments{tensor({3}, d), list({3, 6}), 1, 0, 1};
                              },
                              [=](ScalarType d) {
                                return Arguments{tensor({4, 2}, d), list({3, 4, 6}), -1, 0, -1};
                              }};
  all["glu"] = {[](ScalarType d) {
                  return Arguments{tensor({3, 4}, d), 1};
                },
                [](ScalarType d) {
                  return Arguments{tensor({4, 3}, d), 0};
                }};
  all["glu_backward"] = {[](ScalarType d) {
    return Arguments{tensor({3, 2}, d), tensor({3, 4}, d), 1};
  }};
}

}  // namespace

void add_shapes(Samples& all) {
  add_joined(all);
  add_diagonals(all);
  add_one_hot(all);
  add_indexed(all);
  add_taken_apart(all);
}

}  // namespace torch_lazy::tests
