// Sample calls of operators, by operator name: what the tests of decompositions run. Each file of
// decompose_samples_* adds those of one kind.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "none.h"

namespace torch_lazy::tests {

using at::ScalarType;
using at::Tensor;
using Arguments = std::vector<c10::IValue>;
using Sample = std::function<Arguments(ScalarType)>;
using Samples = std::map<std::string, std::vector<Sample>>;

void add_pointwise(Samples& all);
void add_selection(Samples& all);
void add_activations(Samples& all);
void add_creation(Samples& all);
void add_reductions(Samples& all);
void add_softmax(Samples& all);
void add_normalization(Samples& all);
void add_losses(Samples& all);
void add_pooling(Samples& all);
void add_shapes(Samples& all);

inline Tensor tensor(c10::IntArrayRef sizes, ScalarType dtype) {
  if (dtype == at::kBool) return at::randint(0, 2, sizes).to(at::kBool);
  if (!c10::isFloatingType(dtype))
    return at::randint(-4, 9, sizes, dtype == at::kByte ? at::kByte : dtype);
  return (at::randn(sizes, at::kDouble) * 2).to(dtype);
}

inline Tensor positive(c10::IntArrayRef sizes, ScalarType dtype) {
  return tensor(sizes, dtype).abs().add(1).to(dtype);
}

// Between 0 and 1.
inline Tensor unit(c10::IntArrayRef sizes, ScalarType dtype) {
  return at::rand(sizes, at::kDouble).mul(0.96).add(0.02).to(dtype);
}

// Values at which functions are apt to go wrong.
inline Tensor special(ScalarType dtype) {
  if (!c10::isFloatingType(dtype)) return at::arange(-3, 4, at::kLong).to(dtype);
  const double infinity = std::numeric_limits<double>::infinity();
  return at::tensor({0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, 3.0, -3.0, 6.0, 30.0, -30.0, 88.0,
                     infinity, -infinity, std::nan("")},
                    at::kDouble)
      .to(dtype);
}

inline Tensor mask(c10::IntArrayRef sizes) {
  return at::randint(0, 2, sizes).to(at::kBool);
}

inline Tensor transposed(ScalarType dtype) {
  return tensor({4, 5}, dtype).t();
}

// Part of a larger tensor: an offset, and gaps between rows.
inline Tensor sliced(ScalarType dtype) {
  return tensor({6, 8}, dtype).slice(0, 1, 6).slice(1, 2, 6);
}

inline c10::IValue wrapped(at::Scalar value) {
  Tensor number = at::scalar_tensor(value, at::TensorOptions(value.type()));
  number.unsafeGetTensorImpl()->set_wrapped_number(true);
  return number;
}

// Layouts and values for one tensor, further arguments the same for all.
inline std::vector<Sample> over_one(const Arguments& rest = {}) {
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

inline std::vector<Sample> over_two(const Arguments& rest = {}) {
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
inline std::vector<Sample> without_nan(const std::vector<Sample>& samples) {
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
inline std::vector<Sample> with_numbers(const Arguments& rest = {}) {
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

inline std::vector<Sample> operator+(std::vector<Sample> a, const std::vector<Sample>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace torch_lazy::tests
