// Sample calls of pointwise operators, selection and activations.

#include "decompose_samples.h"

namespace torch_lazy::tests {

namespace {

// Operators on one tensor alone.
constexpr const char* kUnary[] = {
    "exp",         "exp2",
    "expm1",       "log",
    "log2",        "log10",
    "log1p",       "sin",
    "cos",         "tan",
    "asin",        "acos",
    "atan",        "sinh",
    "cosh",        "tanh",
    "asinh",       "acosh",
    "atanh",       "erf",
    "erfc",        "sqrt",
    "rsqrt",       "erfinv",
    "lgamma",      "digamma",
    "sigmoid",     "reciprocal",
    "neg",         "abs",
    "bitwise_not", "floor",
    "ceil",        "round",
    "trunc",       "sign",
    "sgn",         "frac",
    "logical_not", "deg2rad",
    "rad2deg",     "isnan",
    "isinf",       "isposinf",
    "isneginf",    "relu",
    "relu6",       "silu",
    "mish",        "hardswish",
    "hardsigmoid", "log_sigmoid_forward",
    "zero",        "lift_fresh_copy",
    "detach_copy", "alias_copy",
};

}  // namespace

void add_pointwise(Samples& all) {
  for (const char* name : kUnary) all[name] = over_one();
  all["nan_to_num"] = over_one({kNone, kNone, kNone}) + over_one({1.5, 2.5, -3.5});
  for (const char* name : {"add.Tensor", "sub.Tensor", "rsub.Tensor"})
    all[name] =
        over_two({1}) + over_two({3}) + over_two({-0.3}) + with_numbers({1}) + with_numbers({2.5});
  for (const char* name : {"add.Scalar", "sub.Scalar", "rsub.Scalar"})
    all[name] = over_one({2, 1}) + over_one({0.7, 3});
  for (const char* name : {"mul.Tensor", "div.Tensor", "remainder.Tensor", "fmod.Tensor",
                           "copysign.Tensor", "xlogy.Tensor", "floor_divide"})
    all[name] = over_two() + with_numbers();
  for (const char* name : {"maximum", "minimum", "atan2", "hypot", "pow.Tensor_Tensor", "fmax",
                           "fmin", "logaddexp", "heaviside"})
    all[name] = over_two();
  for (const char* name : {"mul.Scalar", "div.Scalar", "remainder.Scalar", "fmod.Scalar",
                           "copysign.Scalar", "xlogy.Scalar_Other", "floor_divide.Scalar"})
    all[name] = over_one({3}) + over_one({0.7});
  all["xlogy.Scalar_Self"] = {[](ScalarType d) { return Arguments{2.5, positive({3, 4}, d)}; }};
  all["remainder.Scalar_Tensor"] = {[](ScalarType d) { return Arguments{7, positive({3, 4}, d)}; }};
  for (const char* name : {"div.Tensor_mode", "div.Scalar_mode"})
    for (const c10::IValue& mode : {c10::IValue("trunc"), c10::IValue("floor"), kNone})
      all[name] = all[name] +
                  (std::string(name) == "div.Tensor_mode" ? over_two({mode}) : over_one({3, mode}));
  for (const c10::IValue& exponent :
       {c10::IValue(0), c10::IValue(1), c10::IValue(2), c10::IValue(3), c10::IValue(-1),
        c10::IValue(-2), c10::IValue(0.5), c10::IValue(-0.5), c10::IValue(1.5), c10::IValue(-1.5),
        c10::IValue(2.5), c10::IValue(-2.5), c10::IValue(5)})
    all["pow.Tensor_Scalar"] = all["pow.Tensor_Scalar"] + over_one({exponent});
  all["pow.Scalar"] = {[](ScalarType d) {
                         return Arguments{2, tensor({3, 4}, d).abs()};
                       },
                       [](ScalarType d) {
                         return Arguments{1, tensor({3, 4}, d).abs()};
                       },
                       [](ScalarType d) {
                         return Arguments{0.3, special(d)};
                       }};
  for (const char* name : {"eq", "ne", "lt", "le", "gt", "ge"}) {
    all[std::string(name) + ".Tensor"] = over_two() + with_numbers();
    all[std::string(name) + ".Scalar"] = over_one({1}) + over_one({0.1});
  }
  for (const char* name : {"logical_and", "logical_or", "logical_xor"}) all[name] = over_two();
  for (const std::string name : {"bitwise_and", "bitwise_or", "bitwise_xor"}) {
    all[name + ".Tensor"] = over_two() + with_numbers();
    all[name + ".Scalar"] = over_one({5});
    all[name + ".Scalar_Tensor"] = {[](ScalarType d) { return Arguments{5, tensor({3}, d)}; }};
  }
  for (const std::string name : {"bitwise_left_shift", "bitwise_right_shift"}) {
    all[name + ".Tensor"] = over_two();
    all[name + ".Tensor_Scalar"] = over_one({2});
    all[name + ".Scalar_Tensor"] = {[](ScalarType d) { return Arguments{5, positive({3}, d)}; }};
  }
  for (const std::string name : {"__lshift__", "__rshift__"}) {
    all[name + ".Tensor"] = over_two();
    all[name + ".Scalar"] = over_one({2});
  }
}

void add_selection(Samples& all) {
  all["where.self"] = {[](ScalarType d) {
                         return Arguments{mask({3, 4}), tensor({3, 4}, d), tensor({4}, d)};
                       },
                       [](ScalarType d) {
                         return Arguments{mask({3, 1}), tensor({}, d), tensor({4}, at::kFloat)};
                       }};
  all["masked_fill.Scalar"] = {[](ScalarType d) {
                                 return Arguments{tensor({3, 4}, d), mask({4}), 2};
                               },
                               [](ScalarType d) {
                                 return Arguments{transposed(d), mask({5, 1}), -INFINITY};
                               }};
  all["masked_fill.Tensor"] = {[](ScalarType d) {
    return Arguments{tensor({3, 4}, d), mask({4}), tensor({}, d)};
  }};
  all["clamp"] = over_one({-1, 2}) + over_one({kNone, 0.4}) + over_one({1, kNone}) +
                 over_one({std::nan(""), 1.0}) + over_one({3, 1});
  all["clamp_min"] = over_one({0}) + over_one({0.3});
  all["clamp_max"] = over_one({0}) + over_one({0.3});
  all["clamp.Tensor"] = {[](ScalarType d) {
                           return Arguments{tensor({3, 4}, d), tensor({4}, d), tensor({3, 1}, d)};
                         },
                         [](ScalarType d) {
                           return Arguments{special(d).unsqueeze(1), special(d), kNone};
                         }};
  all["clamp_min.Tensor"] = all["clamp_max.Tensor"] = over_two();
  for (const char* name : {"addcmul", "addcdiv"})
    for (const c10::IValue& value : {c10::IValue(1), c10::IValue(-0.3), c10::IValue(2)})
      all[name].push_back([=](ScalarType d) {
        return Arguments{tensor({3, 4}, d), tensor({3, 4}, d), positive({4}, d), value};
      });
  for (const double weight : {0.0, 0.1, 0.5, 0.9, 1.0})
    all["lerp.Scalar"].push_back([=](ScalarType d) {
      return Arguments{tensor({3, 4}, d), tensor({3, 4}, d), weight};
    });
  all["lerp.Tensor"] = {[](ScalarType d) {
    return Arguments{tensor({3, 4}, d), tensor({4}, d), unit({3, 4}, d)};
  }};
}

void add_activations(Samples& all) {
  for (const char* mode : {"none", "tanh"}) {
    // ATen's library for these rounds otherwise, and makes NaN of infinities.
    all["gelu"].push_back([=](ScalarType d) { return Arguments{tensor({3, 5}, d), mode}; });
    all["gelu"].push_back([=](ScalarType d) { return Arguments{transposed(d), mode}; });
    all["gelu_backward"].push_back([=](ScalarType d) {
      return Arguments{tensor({3, 5}, d), tensor({3, 5}, d), mode};
    });
  }
  for (const char* name : {"silu_backward", "sigmoid_backward", "tanh_backward", "mish_backward",
                           "hardsigmoid_backward"})
    all[name] = over_two();
  all["hardswish_backward"] = without_nan(over_two());
  all["threshold_backward"] = over_two({0.5});
  for (const char* name : {"hardshrink_backward", "softshrink_backward"})
    all[name] = without_nan(over_two({0.5}));
  all["log_sigmoid_backward"] = {[](ScalarType d) {
    return Arguments{tensor({3, 4}, d), tensor({3, 4}, d), tensor({3, 4}, d).abs().neg().exp()};
  }};
  all["softplus"] = over_one({1, 20}) + over_one({2.5, 3});
  all["softplus_backward"] = over_two({1, 20}) + over_two({2.5, 3});
  all["logit"] = {[](ScalarType d) {
                    return Arguments{unit({3, 4}, d), kNone};
                  },
                  [](ScalarType d) {
                    return Arguments{tensor({3, 4}, d), 0.1};
                  }};
  all["threshold"] = over_one({1, 7});
  all["hardtanh"] = over_one({-1, 1}) + over_one({-0.3, 0.4});
  all["hardtanh_backward"] = without_nan(over_two({-1, 1}));
  all["leaky_relu"] = over_one({0.01});
  all["leaky_relu_backward"] = over_two({0.01, false});
  all["_prelu_kernel"] = {[](ScalarType d) {
    return Arguments{tensor({3, 4}, d), tensor({1, 4}, d)};
  }};
  all["_prelu_kernel_backward"] = {[](ScalarType d) {
    return Arguments{tensor({3, 4}, d), tensor({3, 4}, d), tensor({3, 4}, d)};
  }};
  all["hardshrink"] = all["softshrink"] = over_one({0.5});
  all["elu"] = over_one({1, 1, 1}) + over_one({1.3, 1.1, 0.9});
  all["celu"] = over_one({1.7});
  for (const bool is_result : {false, true})
    all["elu_backward"].push_back([=](ScalarType d) {
      return Arguments{tensor({3, 4}, d), 1.3, 1.1, 0.9, is_result, tensor({3, 4}, d)};
    });
  all["native_dropout_backward"] = {[](ScalarType d) {
    return Arguments{tensor({3, 4}, d), mask({3, 4}), 1.25};
  }};
}

}  // namespace torch_lazy::tests
