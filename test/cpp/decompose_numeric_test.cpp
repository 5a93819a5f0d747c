// Every rule computes what ATen computes: sample calls of each operator are run as they are and
// decomposed.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "graph/decompose.h"
#include "graph/decompose_rules.h"
#include "graph_evaluator.h"
#include "ir/print.h"
#include "ir/verify_graph.h"

namespace torch_lazy {
namespace {

using at::ScalarType;
using at::Tensor;
using torch::jit::Graph;
using torch::jit::Value;
using Arguments = std::vector<c10::IValue>;
using Sample = std::function<Arguments(ScalarType)>;

// ---- One call as a graph ----

struct Call {
  std::shared_ptr<Graph> graph;
  std::vector<Tensor> inputs;
  std::vector<int64_t> offsets;
  std::vector<Tensor> expected;
};

class CallBuilder {
 public:
  CallBuilder(const std::string& name, const Arguments& arguments)
      : op_(c10::Dispatcher::singleton().findSchemaOrThrow(
            ((name.starts_with("philox") ? "torch_lazy::" : "aten::") +
             name.substr(0, name.find('.')))
                .c_str(),
            name.find('.') == std::string::npos ? "" : name.substr(name.find('.') + 1).c_str())) {
    call_.graph = std::make_shared<Graph>();
    std::vector<Value*> values;
    for (const c10::IValue& argument : arguments) values.push_back(add(argument));
    const c10::FunctionSchema& schema = op_.schema();
    torch::jit::Stack stack(arguments.begin(), arguments.end());
    for (size_t i = 0; i < stack.size(); ++i)
      stack[i] = argument_constant(stack[i], schema.arguments()[i].type(), c10::kCPU);
    op_.callBoxed(stack);
    auto* node = call_.graph->create(c10::Symbol::fromQualString(schema.name()), values,
                                     schema.returns().size());
    call_.graph->insertNode(node);
    node->s_(kOverloadAttribute, schema.overload_name());
    for (size_t i = 0; i < stack.size(); ++i) {
      if (stack[i].isTensor()) {
        returns(node->output(i), stack[i].toTensor());
        continue;
      }
      const auto tensors = stack[i].toTensorVector();
      node->output(i)->setType(c10::ListType::ofTensors());
      auto* unpack = call_.graph->createListUnpack(node->output(i), tensors.size());
      call_.graph->insertNode(unpack);
      for (size_t j = 0; j < tensors.size(); ++j) returns(unpack->output(j), tensors[j]);
    }
  }

  Call take() { return std::move(call_); }

 private:
  Value* add(const c10::IValue& argument) {
    if (argument.isTensor()) return add(argument.toTensor());
    if (argument.isTensorList()) {
      std::vector<Value*> items;
      for (const Tensor& item : argument.toTensorVector()) items.push_back(add(item));
      auto* list = call_.graph->createList(c10::TensorType::get(), items);
      call_.graph->insertNode(list);
      return list->output();
    }
    if (argument.isList() && argument.toListRef().empty())
      return call_.graph->insertConstant(std::vector<int64_t>());
    return call_.graph->insertConstant(argument);
  }

  Value* add(const Tensor& tensor) {
    if (!tensor.defined()) return call_.graph->insertConstant(c10::IValue());
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number())
      return call_.graph->insertConstant(tensor);
    Value* value = call_.graph->addInput();
    value->setType(type_of(tensor));
    call_.inputs.push_back(tensor);
    call_.offsets.push_back(tensor.storage_offset());
    return value;
  }

  void returns(Value* value, const Tensor& tensor) {
    if (!tensor.defined()) return;
    value->setType(type_of(tensor));
    call_.graph->registerOutput(value);
    call_.expected.push_back(tensor);
  }

  static c10::TensorTypePtr type_of(const Tensor& tensor) {
    return TensorInfo{tensor.scalar_type(), tensor.device(), tensor.sizes().vec(),
                      tensor.strides().vec()}
        .type();
  }

  c10::OperatorHandle op_;
  Call call_;
};

// ---- Sample tensors ----

Tensor tensor(c10::IntArrayRef sizes, ScalarType dtype) {
  if (dtype == at::kBool) return at::randint(0, 2, sizes).to(at::kBool);
  if (!c10::isFloatingType(dtype))
    return at::randint(-4, 9, sizes, dtype == at::kByte ? at::kByte : dtype);
  return (at::randn(sizes, at::kDouble) * 2).to(dtype);
}

Tensor positive(c10::IntArrayRef sizes, ScalarType dtype) {
  return tensor(sizes, dtype).abs().add(1).to(dtype);
}

// Between 0 and 1.
Tensor unit(c10::IntArrayRef sizes, ScalarType dtype) {
  return at::rand(sizes, at::kDouble).mul(0.96).add(0.02).to(dtype);
}

// Values at which functions are apt to go wrong.
Tensor special(ScalarType dtype) {
  if (!c10::isFloatingType(dtype)) return at::arange(-3, 4, at::kLong).to(dtype);
  const double infinity = std::numeric_limits<double>::infinity();
  return at::tensor({0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, 3.0, -3.0, 6.0, 30.0, -30.0, 88.0,
                     infinity, -infinity, std::nan("")},
                    at::kDouble)
      .to(dtype);
}

Tensor mask(c10::IntArrayRef sizes) {
  return at::randint(0, 2, sizes).to(at::kBool);
}

Tensor transposed(ScalarType dtype) {
  return tensor({4, 5}, dtype).t();
}

// Part of a larger tensor: an offset, and gaps between rows.
Tensor sliced(ScalarType dtype) {
  return tensor({6, 8}, dtype).slice(0, 1, 6).slice(1, 2, 6);
}

c10::IValue wrapped(at::Scalar value) {
  Tensor number = at::scalar_tensor(value, at::TensorOptions(value.type()));
  number.unsafeGetTensorImpl()->set_wrapped_number(true);
  return number;
}

const c10::IValue kNone;

using Samples = std::map<std::string, std::vector<Sample>>;

// Layouts and values for one tensor, further arguments the same for all.
std::vector<Sample> over_one(const Arguments& rest = {}) {
  std::vector<Sample> samples;
  for (const auto make : {+[](ScalarType d) {
                            return tensor({3, 5}, d);
                          },
                          transposed, sliced, special, +[](ScalarType d) { return tensor({}, d); },
                          +[](ScalarType d) {
                            return tensor({2, 0}, d);
                          }})
    samples.push_back([=](ScalarType dtype) {
      Arguments arguments{make(dtype)};
      arguments.insert(arguments.end(), rest.begin(), rest.end());
      return arguments;
    });
  return samples;
}

std::vector<Sample> over_two(const Arguments& rest = {}) {
  std::vector<Sample> samples;
  const auto add = [&](std::function<std::pair<Tensor, Tensor>(ScalarType)> make) {
    samples.push_back([=](ScalarType dtype) {
      const auto [a, b] = make(dtype);
      Arguments arguments{a, b};
      arguments.insert(arguments.end(), rest.begin(), rest.end());
      return arguments;
    });
  };
  add([](ScalarType d) { return std::pair(tensor({3, 5}, d), positive({3, 5}, d)); });
  add([](ScalarType d) { return std::pair(tensor({3, 1, 5}, d), positive({4, 1}, d)); });
  add([](ScalarType d) { return std::pair(transposed(d), positive({5, 4}, d)); });
  add([](ScalarType d) { return std::pair(sliced(d), positive({4}, d)); });
  add([](ScalarType d) { return std::pair(special(d).unsqueeze(1), special(d)); });
  return samples;
}

// What kernels for vectors and for single elements take apart: NaN in comparisons.
std::vector<Sample> without_nan(const std::vector<Sample>& samples) {
  std::vector<Sample> changed;
  for (const Sample& sample : samples)
    changed.push_back([=](ScalarType dtype) {
      Arguments arguments = sample(dtype);
      for (c10::IValue& argument : arguments)
        if (argument.isTensor() && c10::isFloatingType(dtype))
          argument = argument.toTensor().nan_to_num(0.25, INFINITY, -INFINITY);
      return arguments;
    });
  return changed;
}

// With a Python number beside the tensor, as recorded: a wrapped tensor.
std::vector<Sample> with_numbers(const Arguments& rest = {}) {
  std::vector<Sample> samples;
  for (const c10::IValue& number : {wrapped(3), wrapped(1.1)})
    for (const Sample& sample : over_one())
      samples.push_back([=](ScalarType dtype) {
        Arguments arguments = sample(dtype);
        arguments.push_back(number);
        arguments.insert(arguments.end(), rest.begin(), rest.end());
        return arguments;
      });
  return samples;
}

std::vector<Sample> operator+(std::vector<Sample> a, const std::vector<Sample>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

void add_pointwise(Samples& all) {
  for (const char* name : {"exp",         "exp2",
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
                           "detach_copy", "alias_copy"})
    all[name] = over_one();
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
        c10::IValue(-2), c10::IValue(0.5), c10::IValue(-0.5), c10::IValue(2.5), c10::IValue(5)})
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

void add_creation(Samples& all) {
  const auto like = [](ScalarType d) { return transposed(d); };
  all["philox_bernoulli"] = {
      [=](ScalarType d) {
        return Arguments{like(d), at::scalar_tensor(99, at::kLong), 0.4};
      },
      [=](ScalarType d) {
        return Arguments{at::zeros({0, 3}, d), at::scalar_tensor(99, at::kLong), 0.4};
      }};
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

void add_reductions(Samples& all) {
  const auto dims = [](std::vector<int64_t> values) { return c10::IValue(values); };
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
                 [](ScalarType d) { return Arguments{special(d)}; }};
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

void add_normalization(Samples& all) {
  const auto shape = [](std::vector<int64_t> values) { return c10::IValue(values); };
  all["native_layer_norm"] = {
      [=](ScalarType d) {
        return Arguments{tensor({3, 4, 5}, d), shape({5}), tensor({5}, d), tensor({5}, d), 1e-5};
      },
      [=](ScalarType d) {
        return Arguments{tensor({3, 4, 5}, d), shape({4, 5}), kNone, kNone, 1e-5};
      },
      [=](ScalarType d) {
        return Arguments{tensor({3, 5}, d), shape({5}), tensor({5}, d), kNone, 1e-5};
      }};
  for (const bool affine : {true, false})
    all["native_layer_norm_backward"].push_back([=](ScalarType d) {
      const Tensor x = tensor({3, 4, 6}, d);
      const auto [y, mean, rstd] = at::native_layer_norm(x, {6}, {}, {}, 1e-5);
      const c10::IValue weight = affine ? c10::IValue(tensor({6}, d)) : kNone;
      return Arguments{tensor({3, 4, 6}, d),
                       x,
                       shape({6}),
                       mean,
                       rstd,
                       weight,
                       weight,
                       c10::List<bool>({true, affine, affine})};
    });
  const auto group_norm = [&all](std::vector<int64_t> sizes, bool affine, bool channels_last) {
    int64_t area = 1;
    for (size_t i = 2; i < sizes.size(); ++i) area *= sizes[i];
    const auto input = [=](ScalarType d) {
      const Tensor x = tensor(sizes, d);
      return channels_last ? x.contiguous(at::MemoryFormat::ChannelsLast) : x;
    };
    const auto weights = [=](ScalarType d) {
      return affine ? c10::IValue(tensor({sizes[1]}, d)) : kNone;
    };
    all["native_group_norm"].push_back([=](ScalarType d) {
      return Arguments{input(d), weights(d), weights(d), sizes[0], sizes[1], area, 2, 1e-5};
    });
    all["native_group_norm_backward"].push_back([=](ScalarType d) {
      const Tensor x = input(d);
      const auto [y, mean, rstd] =
          at::native_group_norm(x, {}, {}, sizes[0], sizes[1], area, 2, 1e-5);
      return Arguments{input(d), x,        mean, rstd, weights(d),
                       sizes[0], sizes[1], area, 2,    c10::List<bool>({true, affine, affine})};
    });
  };
  group_norm({3, 4, 2, 5}, true, false);
  group_norm({3, 4, 2, 5}, true, true);
  group_norm({3, 4, 7}, false, false);
  group_norm({3, 4}, true, false);
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{3, 4, 2, 5}, std::vector<int64_t>{3, 4}})
    for (const bool affine : {true, false}) {
      const auto weights = [=](ScalarType d) {
        return affine ? c10::IValue(tensor({4}, d)) : kNone;
      };
      all["native_batch_norm"].push_back([=](ScalarType d) {
        return Arguments{tensor(sizes, d), weights(d), weights(d), tensor({4}, d),
                         positive({4}, d), false,      0.1,        1e-5};
      });
      all["_native_batch_norm_legit_no_training"].push_back([=](ScalarType d) {
        return Arguments{tensor(sizes, d), weights(d), weights(d), tensor({4}, d),
                         positive({4}, d), 0.1,        1e-5};
      });
    }
}

void add_losses(Samples& all) {
  for (const int64_t reduction : {0, 1, 2}) {
    const auto grad = [=](ScalarType d) {
      return reduction == 0 ? tensor({3, 4}, d) : tensor({}, d);
    };
    const auto add = [&](const char* name, const Arguments& rest) {
      all[name].push_back([=](ScalarType d) {
        Arguments arguments{tensor({3, 4}, d), tensor({3, 4}, d), reduction};
        arguments.insert(arguments.end(), rest.begin(), rest.end());
        return arguments;
      });
    };
    const auto add_backward = [&](const char* name, const Arguments& rest) {
      all[name].push_back([=](ScalarType d) {
        Arguments arguments{grad(d), tensor({3, 4}, d), tensor({3, 4}, d), reduction};
        arguments.insert(arguments.end(), rest.begin(), rest.end());
        return arguments;
      });
    };
    add("mse_loss", {});
    add_backward("mse_loss_backward", {});
    add("soft_margin_loss", {});
    add_backward("soft_margin_loss_backward", {});
    add("smooth_l1_loss", {0.7});
    add("smooth_l1_loss", {0.0});
    add_backward("smooth_l1_loss_backward", {0.7});
    add("huber_loss", {0.7});
    add_backward("huber_loss_backward", {0.7});
    for (const bool weighted : {false, true}) {
      const auto weight = [=](ScalarType d, int64_t count) {
        return weighted ? c10::IValue(positive({count}, d)) : kNone;
      };
      all["binary_cross_entropy_backward"].push_back([=](ScalarType d) {
        return Arguments{grad(d), unit({3, 4}, d), unit({3, 4}, d), weight(d, 4), reduction};
      });
      all["binary_cross_entropy_with_logits"].push_back([=](ScalarType d) {
        return Arguments{tensor({3, 4}, d), unit({3, 4}, d), weight(d, 4), weight(d, 4), reduction};
      });
      all["nll_loss_backward"].push_back([=](ScalarType d) {
        const Tensor target = at::tensor({1, 4, 2}, at::kLong);
        return Arguments{reduction == 0 ? tensor({3}, d) : tensor({}, d),
                         tensor({3, 5}, d),
                         target,
                         weight(d, 5),
                         reduction,
                         2,
                         positive({}, d)};
      });
      all["nll_loss_backward"].push_back([=](ScalarType d) {
        return Arguments{tensor({}, d),  tensor({5}, d), at::scalar_tensor(3, at::kLong),
                         weight(d, 5),   reduction,      -100,
                         positive({}, d)};
      });
      all["nll_loss2d_backward"].push_back([=](ScalarType d) {
        return Arguments{reduction == 0 ? tensor({2, 3, 4}, d) : tensor({}, d),
                         tensor({2, 5, 3, 4}, d),
                         at::randint(0, 5, {2, 3, 4}),
                         weight(d, 5),
                         reduction,
                         2,
                         positive({}, d)};
      });
    }
  }
}

void add_shapes(Samples& all) {
  const auto list = [](const std::vector<int64_t>& values) { return c10::IValue(values); };
  const auto tensors = [](const std::vector<Tensor>& values) { return c10::IValue(values); };
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

const Samples& samples() {
  static const Samples all = [] {
    Samples made;
    add_pointwise(made);
    add_selection(made);
    add_activations(made);
    add_creation(made);
    add_reductions(made);
    add_softmax(made);
    add_normalization(made);
    add_losses(made);
    add_shapes(made);
    return made;
  }();
  return all;
}

// ---- Comparison ----

struct Tolerance {
  double relative, absolute;
};

Tolerance tolerance_of(ScalarType dtype) {
  switch (dtype) {
    case at::kDouble:
      return {1e-12, 1e-12};
    case at::kFloat:
      return {2e-6, 2e-6};
    case at::kHalf:
      return {2e-3, 1e-3};
    case at::kBFloat16:
      return {1.6e-2, 4e-3};
    default:
      return {0, 0};
  }
}

bool close(const Tensor& expected, const Tensor& actual) {
  Tolerance tolerance = tolerance_of(expected.scalar_type());
  // Sums lose what is small beside their terms.
  if (c10::isFloatingType(expected.scalar_type()) && expected.numel() > 0) {
    const Tensor finite = expected.abs().to(at::kDouble).nan_to_num(0, 0, 0);
    tolerance.absolute *= std::max(1.0, std::min(100.0, finite.max().item<double>()));
  }
  return expected.sizes() == actual.sizes() && expected.strides() == actual.strides() &&
         expected.scalar_type() == actual.scalar_type() &&
         at::allclose(actual, expected, tolerance.relative, tolerance.absolute, true);
}

std::optional<Call> call_of(const std::string& name, const Sample& sample, ScalarType dtype) {
  try {
    return CallBuilder(name, sample(dtype)).take();
  } catch (const std::exception&) {
    return std::nullopt;  // not for this dtype
  }
}

class DecompositionRules : public ::testing::TestWithParam<std::string> {};

TEST_P(DecompositionRules, ComputesWhatATenComputes) {
  const std::string name = GetParam();
  at::manual_seed(0);
  size_t calls = 0;
  for (const ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kLong,
                                 at::kInt, at::kByte, at::kBool})
    for (const Sample& sample : samples().at(name)) {
      // Losses of integers are undefined; their kernels divide by parameters cut to integers.
      if (!c10::isFloatingType(dtype) && name.find("_loss") != std::string::npos) continue;
      auto call = call_of(name, sample, dtype);
      if (!call) continue;
      ++calls;
      const std::string before = print_graph(*call->graph);
      for (const bool offsets_known : {true, false}) {
        auto graph = call->graph->copy();
        decompose(graph, offsets_known ? call->offsets : std::vector<int64_t>());
        verify_graph(*graph);
        const auto actual = testing::evaluate(*graph, call->inputs);
        ASSERT_EQ(actual.size(), call->expected.size());
        for (size_t i = 0; i < actual.size(); ++i) {
          if (close(call->expected[i], actual[i])) continue;
          std::ostringstream inputs;
          for (const Tensor& input : call->inputs) inputs << input << "\n";
          ADD_FAILURE() << dtype << " result " << i << "\n"
                        << before << print_graph(*graph) << inputs.str() << "expected "
                        << call->expected[i] << "\nactual " << actual[i];
          return;
        }
      }
    }
  EXPECT_GT(calls, 0u);
}

std::vector<std::string> sampled() {
  std::vector<std::string> names;
  for (const auto& [name, list] : samples())
    if (!list.empty()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(AllOperators, DecompositionRules, ::testing::ValuesIn(sampled()),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name)
                             if (c == '.') c = '_';
                           return name;
                         });

// But for memory with any values, of which there is nothing to compare.
TEST(Decompose, EveryRuleHasSamples) {
  for (const auto& [name, rule] : decomposition_rules())
    EXPECT_TRUE(samples().count(name) || name.starts_with("empty") || name.starts_with("new_empty"))
        << name;
}

}  // namespace
}  // namespace torch_lazy
