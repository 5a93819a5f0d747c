// What the prelude computes, on every instruction set that this machine has: exact where exactness
// is promised, near double's result elsewhere. benchmarks/accuracy.cpp sweeps wider.

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "prelude_on_target.h"

namespace torch_lazy {
namespace {

template <class T>
at::Tensor tensor_of(const std::vector<T>& values) {
  return at::from_blob(const_cast<T*>(values.data()), {static_cast<int64_t>(values.size())},
                       at::TensorOptions(c10::CppTypeToScalarType<T>::value));
}

// What eager's CPU kernel gives.
at::Tensor eager(const char* name, const char* overload, torch::jit::Stack stack) {
  c10::Dispatcher::singleton().findSchemaOrThrow(name, overload).callBoxed(&stack);
  return stack[0].toTensor();
}

template <class T>
std::vector<T> values_of(const at::Tensor& tensor) {
  const T* begin = tensor.const_data_ptr<T>();
  return {begin, begin + tensor.numel()};
}

template <class T>
bool same(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    return a == b && std::signbit(a) == std::signbit(b);
  }
  return a == b;
}

// Over all binades, with special values.
std::vector<float> floats(size_t count) {
  std::vector<float> result = {0.0F,
                               -0.0F,
                               1.0F,
                               -1.0F,
                               0.5F,
                               std::numeric_limits<float>::denorm_min(),
                               -std::numeric_limits<float>::min(),
                               std::numeric_limits<float>::max(),
                               std::numeric_limits<float>::infinity(),
                               -std::numeric_limits<float>::infinity(),
                               std::numeric_limits<float>::quiet_NaN()};
  std::mt19937 random(7);
  std::uniform_real_distribution<float> number(-20, 20);
  while (result.size() < count) {
    const uint32_t bits = random();
    float pattern = 0;
    std::memcpy(&pattern, &bits, sizeof bits);
    result.push_back(pattern);
    result.push_back(number(random));
  }
  return result;
}

// All pairs of numbers at the ends, around zero and around the width, in two arrays.
template <class T>
void integer_pairs(std::vector<T>& a, std::vector<T>& b, bool zeros) {
  const auto width = static_cast<T>(8 * sizeof(T));
  const T least = std::numeric_limits<T>::min(), greatest = std::numeric_limits<T>::max();
  std::vector<T> numbers = {0,
                            1,
                            2,
                            3,
                            5,
                            7,
                            width,
                            static_cast<T>(width - 1),
                            static_cast<T>(width + 1),
                            greatest,
                            static_cast<T>(greatest - 1),
                            static_cast<T>(greatest / 2),
                            static_cast<T>(greatest / 3)};
  if (std::is_signed_v<T>) {
    for (const T number : std::vector<T>(numbers)) numbers.push_back(static_cast<T>(-number));
    numbers.push_back(least);
    numbers.push_back(static_cast<T>(least + 1));
  }
  for (const T x : numbers) {
    for (const T y : numbers) {
      // Eager divides by zero with an error, and the least by -1 with a crash.
      if (!zeros && (y == 0 || (std::is_signed_v<T> && x == least && y == static_cast<T>(-1)))) {
        continue;
      }
      a.push_back(x);
      b.push_back(y);
    }
  }
}

TEST_P(PreludeNumbersTest, FloatFunctionsAreWithinTwoUnitsOfDoubles) {
  const std::vector<float> x = floats(20000);
  const at::Tensor exact = tensor_of(x).to(at::kDouble);
  for (const std::string& name :
       words("exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh "
             "acosh "
             "atanh erf erfc erfinv lgamma sigmoid sqrt rsqrt reciprocal floor ceil round trunc")) {
    const std::vector<float> got = map<float, float>("lazy_" + name, "float", "float", x);
    const std::vector<double> wanted =
        values_of<double>(eager(("aten::" + name).c_str(), "", {exact}));

    for (size_t i = 0; i < x.size(); ++i) {
      const auto rounded = static_cast<float>(wanted[i]);
      if (same(got[i], rounded)) continue;
      ASSERT_FALSE(got[i] == 0 && rounded == 0) << name << "(" << x[i] << ") has the other sign";
      const double unit =
          std::max(std::ldexp(1.0, std::ilogb(wanted[i]) - 23), std::ldexp(1.0, -149));
      ASSERT_LE(std::abs(got[i] - wanted[i]), 2 * unit)
          << name << "(" << x[i] << ") = " << got[i] << ", not " << rounded;
    }
  }
}

TEST_P(PreludeNumbersTest, ScalarsGetWhatVectorsGet) {
  const std::vector<float> x = floats(500);
  const std::vector<double> y(x.begin(), x.end());
  for (const std::string& name : words("exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos "
                                       "atan sinh cosh tanh asinh acosh "
                                       "atanh erf erfc erfinv lgamma digamma sigmoid sqrt rsqrt "
                                       "reciprocal floor ceil round trunc "
                                       "abs sign neg cast_bfloat16 cast_half cast_float")) {
    const std::string function = "lazy_" + name;
    const auto vectors = map<float, float>(function, "float", "float", x);
    const auto scalars = map_scalars<float>(function, "float", x);
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_TRUE(same(vectors[i], scalars[i])) << name << "(" << x[i] << ")";
    }
    if (name.starts_with("cast")) continue;
    const auto double_vectors = map<double, double>(function, "double", "double", y);
    const auto double_scalars = map_scalars<double>(function, "double", y);
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_TRUE(same(double_vectors[i], double_scalars[i])) << name << "(" << y[i] << "), double";
    }
  }
}

TEST_P(PreludeNumbersTest, MinimumAndMaximumPassNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> a = {nan, 1, nan, 2, -1}, b = {1, nan, nan, 1, 3};

  const auto least = map<float, float>("lazy_min", "float", "float", a, b);
  const auto greatest = map<float, float>("lazy_max", "float", "float", a, b);

  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(std::isnan(least[i])) << i;
    EXPECT_TRUE(std::isnan(greatest[i])) << i;
  }
  EXPECT_EQ(least[3], 1);
  EXPECT_EQ(greatest[4], 3);
}

TEST_P(PreludeNumbersTest, FloatDivisionRoundsAsEager) {
  std::vector<float> a = floats(20000), b = a;
  std::shuffle(b.begin(), b.end(), std::mt19937(3));
  const auto expect = [&](const std::string& name, const at::Tensor& wanted) {
    const auto got = map<float, float>("lazy_" + name, "float", "float", a, b);
    const auto expected = values_of<float>(wanted);
    for (size_t i = 0; i < a.size(); ++i) {
      // A quotient beyond 2^24 that eager's vectors, unlike its scalars, do not reduce exactly.
      if (std::abs(a[i] / b[i]) > 0x1p22F) continue;
      ASSERT_TRUE(same(got[i], expected[i]))
          << name << "(" << a[i] << ", " << b[i] << ") = " << got[i] << ", not " << expected[i];
    }
  };

  expect("fmod", eager("aten::fmod", "Tensor", {tensor_of(a), tensor_of(b)}));
  expect("remainder", eager("aten::remainder", "Tensor", {tensor_of(a), tensor_of(b)}));
  expect("div_floor",
         eager("aten::div", "Tensor_mode", {tensor_of(a), tensor_of(b), c10::IValue("floor")}));
  expect("div_trunc",
         eager("aten::div", "Tensor_mode", {tensor_of(a), tensor_of(b), c10::IValue("trunc")}));
}

TEST_P(PreludeNumbersTest, FloatRemainderIsExactForQuotientsOfAnySize) {
  const std::vector<float> a = floats(5000);
  std::vector<float> b = a;
  std::shuffle(b.begin(), b.end(), std::mt19937(4));

  const auto got = map<float, float>("lazy_fmod", "float", "float", a, b);

  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_TRUE(same(got[i], std::fmod(a[i], b[i]))) << a[i] << ", " << b[i];
  }
}

template <class T>
class IntegerCase {
 public:
  static const char* name() {
    if (std::is_same_v<T, uint8_t>) return "uint8";
    if (sizeof(T) == 1) return "int8";
    if (sizeof(T) == 2) return "int16";
    return sizeof(T) == 4 ? "int32" : "int64";
  }
};

template <class Check>
void for_each_integer_type(Check check) {
  check(uint8_t{});
  check(int8_t{});
  check(int16_t{});
  check(int32_t{});
  check(int64_t{});
}

TEST_P(PreludeNumbersTest, IntegerOperatorsAreEagers) {
  for_each_integer_type([&](auto zero) {
    using T = decltype(zero);
    const std::string type = IntegerCase<T>::name();
    const auto expect = [&](const std::string& name, const char* aten, const char* overload,
                            bool zeros, torch::jit::Stack more = {}) {
      std::vector<T> a, b;
      integer_pairs(a, b, zeros);
      const auto got = map<T, T>("lazy_" + name, type, type, a, b);
      torch::jit::Stack stack = {tensor_of(a), tensor_of(b)};
      stack.insert(stack.end(), more.begin(), more.end());
      const auto expected = values_of<T>(eager(aten, overload, stack));
      for (size_t i = 0; i < a.size(); ++i) {
        ASSERT_EQ(got[i], expected[i]) << name << " of " << type << " " << +a[i] << ", " << +b[i];
      }
    };
    expect("add", "aten::add", "Tensor", true, {1});
    expect("sub", "aten::sub", "Tensor", true, {1});
    expect("mul", "aten::mul", "Tensor", true);
    expect("min", "aten::minimum", "", true);
    expect("max", "aten::maximum", "", true);
    expect("and", "aten::bitwise_and", "Tensor", true);
    expect("or", "aten::bitwise_or", "Tensor", true);
    expect("xor", "aten::bitwise_xor", "Tensor", true);
    expect("shift_left", "aten::bitwise_left_shift", "Tensor", true);
    expect("shift_right", "aten::bitwise_right_shift", "Tensor", true);
    expect("div_trunc", "aten::div", "Tensor_mode", false, {c10::IValue("trunc")});
    expect("div_floor", "aten::div", "Tensor_mode", false, {c10::IValue("floor")});
    expect("remainder", "aten::remainder", "Tensor", false);
    expect("fmod", "aten::fmod", "Tensor", false);
    expect("pow", "aten::pow", "Tensor_Tensor", true);
  });
}

TEST_P(PreludeNumbersTest, IntegerDivisionByZeroDoesNotTrap) {
  for_each_integer_type([&](auto zero) {
    using T = decltype(zero);
    const std::string type = IntegerCase<T>::name();
    const std::vector<T> a = {std::numeric_limits<T>::min(), 1, std::numeric_limits<T>::max()};
    const std::vector<T> zeros(3, 0), ones(3, static_cast<T>(-1));
    for (const std::string name : {"div_trunc", "div_floor", "remainder", "fmod"}) {
      EXPECT_EQ((map<T, T>("lazy_" + name, type, type, a, zeros).size()), 3);
      EXPECT_EQ((map<T, T>("lazy_" + name, type, type, a, ones).size()), 3);
    }
  });
}

TEST_P(PreludeNumbersTest, CastsAreEagers) {
  std::vector<float> numbers;
  for (const float x : floats(5000)) {
    if (std::abs(x) < 127) numbers.push_back(x);
  }
  for_each_integer_type([&](auto zero) {
    using T = decltype(zero);
    std::vector<float> inside;
    for (const float x : numbers) {
      if (std::is_signed_v<T> || x >= 0) inside.push_back(x);
    }
    const std::string type = IntegerCase<T>::name();
    const auto got = map<float, T>("lazy_cast_" + type, "float", type, inside);
    std::vector<T> all, unused;
    integer_pairs(all, unused, true);
    const auto back = map<T, float>("lazy_cast_float", type, "float", all);
    for (size_t i = 0; i < inside.size(); ++i) ASSERT_EQ(got[i], static_cast<T>(inside[i]));
    for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(back[i], static_cast<float>(all[i]));
  });
}

TEST_P(PreludeNumbersTest, HalvesAndBfloat16RoundAsEager) {
  const std::vector<float> x = floats(200000);
  for (const auto& [type, eager_type] :
       {std::pair{"bfloat16", at::kBFloat16}, std::pair{"half", at::kHalf}}) {
    const auto got = map<float, float>(std::string("lazy_cast_") + type, "float", "float", x);
    const auto stored = map<float, uint16_t>(std::string("lazy_cast_") + type, "float", type, x);
    const at::Tensor expected = tensor_of(x).to(eager_type);
    const auto values = values_of<float>(expected.to(at::kFloat));
    const auto* bits = static_cast<const uint16_t*>(expected.const_data_ptr());

    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_TRUE(same(got[i], values[i])) << type << " " << x[i];
      if (std::isnan(x[i])) continue;
      ASSERT_EQ(stored[i], bits[i]) << type << " " << x[i];
    }
  }
}

TEST_P(PreludeNumbersTest, FloatsOfEightBitsRoundAsEager) {
  std::vector<float> x = floats(200000);
  // What lies halfway between two of them, and to either side of it, in and beyond their range.
  for (const c10::ScalarType format : {at::kFloat8_e4m3fn, at::kFloat8_e5m2}) {
    const at::Tensor positive = at::arange(0x7f, at::kByte).view(format).to(at::kFloat);
    const auto values = values_of<float>(positive.masked_fill(positive.isinf(), 65536));
    for (size_t i = 1; i < values.size(); ++i) {
      const float halfway = (values[i - 1] + values[i]) / 2;
      for (const float value :
           {std::nextafter(halfway, 0.0f), halfway, values[i], std::nextafter(halfway, 1e6f)}) {
        x.push_back(value);
        x.push_back(-value);
      }
    }
  }
  x.insert(x.end(), {464.0f, std::nextafter(464.0f, 500.0f), 480.0f, -480.0f, 61440.0f});
  for (const auto& [type, eager_type] : {std::pair{"float8_e4m3fn", at::kFloat8_e4m3fn},
                                         std::pair{"float8_e5m2", at::kFloat8_e5m2}}) {
    const auto got = map<float, float>(std::string("lazy_cast_") + type, "float", "float", x);
    const auto stored = map<float, uint8_t>(std::string("lazy_cast_") + type, "float", type, x);
    const at::Tensor expected = tensor_of(x).to(eager_type);
    const auto values = values_of<float>(expected.to(at::kFloat));
    const auto* bits = static_cast<const uint8_t*>(expected.const_data_ptr());

    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_TRUE(same(got[i], values[i])) << type << " " << x[i];
      ASSERT_EQ(stored[i], bits[i]) << type << " " << x[i];
    }
  }
}

TEST_P(PreludeNumbersTest, EveryFloatOfEightBitsIsReadExactly) {
  std::vector<uint8_t> all(256);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint8_t>(i);
  for (const auto& [type, eager_type] : {std::pair{"float8_e4m3fn", at::kFloat8_e4m3fn},
                                         std::pair{"float8_e5m2", at::kFloat8_e5m2}}) {
    const auto got = map<uint8_t, float>("lazy_cast_float", type, "float", all, {}, "float");

    const auto expected = values_of<float>(
        at::from_blob(all.data(), {256}, at::TensorOptions(eager_type)).to(at::kFloat));
    for (size_t i = 0; i < all.size(); ++i) ASSERT_TRUE(same(got[i], expected[i])) << type << i;
  }
}

TEST_P(PreludeNumbersTest, EveryHalfIsReadExactly) {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);

  const auto got = map<uint16_t, float>("lazy_cast_float", "half", "float", all, {}, "float");

  const auto expected = values_of<float>(
      at::from_blob(all.data(), {65536}, at::TensorOptions(at::kHalf)).to(at::kFloat));
  for (size_t i = 0; i < all.size(); ++i) ASSERT_TRUE(same(got[i], expected[i])) << i;
}

// CUDA's elementary functions are CUDA's library's, for which the emulator takes C's: what is tried
// there is what the prelude adds to them.
std::vector<PreludeTarget> all_prelude_targets() {
  std::vector<PreludeTarget> targets = cpu_prelude_targets();
  targets.push_back({"Cuda", std::nullopt});
  return targets;
}

INSTANTIATE_TEST_SUITE_P(Targets, PreludeNumbersTest, testing::ValuesIn(all_prelude_targets()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace torch_lazy
