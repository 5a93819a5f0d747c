// The functions that kernels are written in, on every instruction set that this machine has: exact
// where exactness is promised, near double's result elsewhere. benchmarks/accuracy.cpp sweeps
// wider.

#include "codegen/prelude.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "backend/cpu/kernel_compiler.h"

namespace torch_lazy {
namespace {

using codegen::prelude_for;
using codegen::prelude_has;
using codegen::Target;

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> result;
  for (std::string word; stream >> word;) result.push_back(word);
  return result;
}

// Every function that the target has.
std::set<std::string> all_functions(Target target) {
  const auto operators = words(
      "select equal not_equal less less_equal greater greater_equal add sub mul neg abs sign min "
      "max "
      "and or xor not shift_left shift_right div div_trunc div_floor remainder fmod pow fma sqrt "
      "rsqrt reciprocal exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan atan2 sinh "
      "cosh tanh asinh acosh atanh erf erfc erfinv lgamma digamma sigmoid hypot floor ceil round "
      "trunc is_nan is_inf copy_sign philox_uniform hsum hprod hmin hmax hand hor");
  const auto storage = words("float double int64 int32 int16 int8 uint8 bool bfloat16 half");
  std::set<std::string> result = {"lazy_iota", "lazy_lanes_below"};
  const auto add = [&](const std::string& function) {
    if (prelude_has(target, function)) result.insert(function);
  };
  for (const std::string& type : words("float double int64 int32 int16 int8 uint8 bool")) {
    for (const std::string& value : {type, "v_" + type}) {
      for (const std::string& name : operators) add("lazy_" + name + ":" + value);
      for (const std::string& to : storage) {
        add("lazy_cast_" + to + ":" + value);
        add("lazy_bitcast_" + to + ":" + value);
      }
    }
  }
  for (const std::string& name : words("splat load store gather scatter get put lowest greatest")) {
    for (const std::string& type : storage) {
      for (const char* form : {"", ":int", ":v_bool", ":v_int64"}) {
        add("lazy_" + name + "_" + type + form);
      }
    }
  }
  return result;
}

TEST(PreludeTest, NamesAFunctionThatDoesNotExist) {
  try {
    prelude_for({.lanes = 8}, {"lazy_bessel:v_float"});
    FAIL() << "no error";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("lazy_bessel:v_float"), std::string::npos);
  }
}

TEST(PreludeTest, HoldsOnlyWhatIsUsedAndEachPieceOnce) {
  const std::string source = prelude_for({.lanes = 8}, {"lazy_tanh:v_float", "lazy_exp:v_float"});

  const size_t first = source.find("v_float lazy_exp(v_float");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(source.find("v_float lazy_exp(v_float", first + 1), std::string::npos);
  EXPECT_LT(first, source.find("v_float lazy_tanh(v_float"));
  EXPECT_EQ(source.find("lazy_erf"), std::string::npos);
  EXPECT_EQ(source.find("Value"), std::string::npos);
}

TEST(PreludeTest, HasTheSameFunctionsForCudaAsForCpu) {
  const Target cuda{.kind = Target::Kind::kCuda, .lanes = 1};

  for (const std::string& function : all_functions({.lanes = 8})) {
    EXPECT_TRUE(prelude_has(cuda, function)) << function;
  }
}

class PreludeOnTargetTest : public testing::TestWithParam<KernelTarget> {
 protected:
  void SetUp() override {
    if (kernel_vector_bits(GetParam()) > kernel_vector_bits()) {
      GTEST_SKIP() << "this machine lacks the instructions";
    }
  }

  int lanes() const { return kernel_vector_bits(GetParam()) / 32; }
  Target target() const { return {.lanes = lanes()}; }

  // A kernel of `body`, which sees pointers p[0] ..., and begin and end.
  KernelFunction compile(const std::set<std::string>& functions, const std::string& body) {
    kernel_ = compile_kernel(
        prelude_for(target(), functions) +
            "extern \"C\" void kernel(void* const* p, const int64* sizes, const double* numbers,\n"
            "                       int64 begin, int64 end) {\n" +
            body + "\n}\n",
        "kernel", GetParam());
    return kernel_->function;
  }

  // `result[i] = function(a[i], b[i])` by vectors, with the end of the arrays masked.
  template <class A, class R>
  std::vector<R> map(const std::string& function, const std::string& type,
                     const std::string& result_type, const std::vector<A>& a,
                     const std::vector<A>& b = {}, const std::string& value = "") {
    const std::string load = "lazy_load_" + type, store = "lazy_store_" + result_type;
    const auto loads = [&](const std::string& arguments) {
      return load + "(a + i" + arguments + ")" +
             (b.empty() ? "" : ", " + load + "(b + i" + arguments + ")");
    };
    const KernelFunction kernel =
        compile({function + ":v_" + (value.empty() ? type : value), load, load + ":int", store,
                 store + ":int"},
                "auto* a = (const " + storage(type) + "*)p[0], *b = (const " + storage(type) +
                    "*)p[1];\n" + "auto* result = (" + storage(result_type) + "*)p[2];\n" +
                    "int64 i = begin;\n"
                    "for (; i + LAZY_LANES <= end; i += LAZY_LANES)\n  " +
                    store + "(result + i, " + function + "(" + loads("") + "));\n" +
                    "if (i < end) { const int n = end - i; " + store + "(result + i, " + function +
                    "(" + loads(", n") + "), n); }");
    std::vector<R> result(a.size());
    void* const pointers[] = {const_cast<A*>(a.data()), const_cast<A*>(b.data()), result.data()};
    kernel(pointers, nullptr, nullptr, 0, static_cast<int64_t>(a.size()));
    return result;
  }

  // The same one by one, through the scalar functions.
  template <class T>
  std::vector<T> map_scalars(const std::string& function, const std::string& type,
                             const std::vector<T>& a) {
    const KernelFunction kernel =
        compile({function + ":" + type, "lazy_get_" + type, "lazy_put_" + type},
                "auto* a = (const " + type + "*)p[0];\nauto* result = (" + type + "*)p[1];\n" +
                    "for (int64 i = begin; i < end; ++i) lazy_put_" + type + "(result + i, " +
                    function + "(lazy_get_" + type + "(a + i)));");
    std::vector<T> result(a.size());
    void* const pointers[] = {const_cast<T*>(a.data()), result.data()};
    kernel(pointers, nullptr, nullptr, 0, static_cast<int64_t>(a.size()));
    return result;
  }

  static std::string storage(const std::string& type) {
    if (type == "bfloat16" || type == "half") return "unsigned short";
    return type == "bool" ? "unsigned char" : type;
  }

 private:
  std::shared_ptr<const CompiledKernel> kernel_;
};

INSTANTIATE_TEST_SUITE_P(Targets, PreludeOnTargetTest,
                         testing::Values(KernelTarget::kHost, KernelTarget::kAvx2,
                                         KernelTarget::kBaseline),
                         [](const auto& info) {
                           switch (info.param) {
                             case KernelTarget::kHost:
                               return "Host";
                             case KernelTarget::kAvx2:
                               return "Avx2";
                             default:
                               return "Baseline";
                           }
                         });

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

TEST_P(PreludeOnTargetTest, EveryFunctionCompiles) {
  EXPECT_NE(compile(all_functions(target()), ""), nullptr);
}

TEST_P(PreludeOnTargetTest, FloatFunctionsAreWithinTwoUnitsOfDoubles) {
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
      const double unit =
          std::max(std::ldexp(1.0, std::ilogb(wanted[i]) - 23), std::ldexp(1.0, -149));
      ASSERT_LE(std::abs(got[i] - wanted[i]), 2 * unit)
          << name << "(" << x[i] << ") = " << got[i] << ", not " << rounded;
    }
  }
}

TEST_P(PreludeOnTargetTest, ScalarsGetWhatVectorsGet) {
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

TEST_P(PreludeOnTargetTest, MinimumAndMaximumPassNaN) {
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

TEST_P(PreludeOnTargetTest, FloatDivisionRoundsAsEager) {
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

TEST_P(PreludeOnTargetTest, FloatRemainderIsExactForQuotientsOfAnySize) {
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

TEST_P(PreludeOnTargetTest, IntegerOperatorsAreEagers) {
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

TEST_P(PreludeOnTargetTest, IntegerDivisionByZeroDoesNotTrap) {
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

TEST_P(PreludeOnTargetTest, CastsAreEagers) {
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

TEST_P(PreludeOnTargetTest, HalvesAndBfloat16RoundAsEager) {
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

TEST_P(PreludeOnTargetTest, EveryHalfIsReadExactly) {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);

  const auto got = map<uint16_t, float>("lazy_cast_float", "half", "float", all, {}, "float");

  const auto expected = values_of<float>(
      at::from_blob(all.data(), {65536}, at::TensorOptions(at::kHalf)).to(at::kFloat));
  for (size_t i = 0; i < all.size(); ++i) ASSERT_TRUE(same(got[i], expected[i])) << i;
}

// Two pages of which the second cannot be touched.
class GuardedPage {
 public:
  GuardedPage() : size_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    pages_ = static_cast<char*>(
        mmap(nullptr, 2 * size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(pages_ + size_, size_, PROT_NONE);
  }
  GuardedPage(const GuardedPage&) = delete;
  GuardedPage& operator=(const GuardedPage&) = delete;
  ~GuardedPage() { munmap(pages_, 2 * size_); }

  char* end() const { return pages_ + size_; }

 private:
  size_t size_;
  char* pages_;
};

TEST_P(PreludeOnTargetTest, PartsOfVectorsTouchNoMemoryBeyond) {
  const GuardedPage source, destination;
  for (const auto& [type, bytes] : {std::pair{"float", 4},
                                    {"double", 8},
                                    {"int64", 8},
                                    {"int32", 4},
                                    {"int16", 2},
                                    {"int8", 1},
                                    {"uint8", 1},
                                    {"bool", 1},
                                    {"bfloat16", 2},
                                    {"half", 2}}) {
    const std::string name = type, storage_type = storage(type);
    const KernelFunction kernel =
        compile({"lazy_load_" + name + ":int", "lazy_store_" + name + ":int",
                 "lazy_load_" + name + ":v_bool", "lazy_store_" + name + ":v_bool",
                 "lazy_gather_" + name, "lazy_scatter_" + name, "lazy_lanes_below"},
                "auto* from = (const " + storage_type + "*)p[0]; auto* to = (" + storage_type +
                    "*)p[1];\n"
                    "const int n = end;\n"
                    "lazy_store_" +
                    name + "(to, lazy_load_" + name +
                    "(from, n), n);\n"
                    "lazy_store_" +
                    name + "(to, lazy_load_" + name +
                    "(from, lazy_lanes_below(n)), lazy_lanes_below(n));\n"
                    "lazy_scatter_" +
                    name + "(to, 1, lazy_gather_" + name + "(from, 1, n), n);");
    for (int n = 0; n <= lanes(); ++n) {
      char* const from = source.end() - n * bytes;
      char* const to = destination.end() - n * bytes;
      for (int i = 0; i < n * bytes; ++i) from[i] = static_cast<char>(i % bytes == 0 ? 1 : 0);
      std::memset(to - 1, 0x55, n * bytes + 1);
      void* const pointers[] = {from, to};

      kernel(pointers, nullptr, nullptr, 0, n);

      EXPECT_EQ(std::memcmp(from, to, n * bytes), 0) << name << " " << n;
      EXPECT_EQ(to[-1], 0x55) << name << " " << n;
    }
  }
}

TEST_P(PreludeOnTargetTest, StridedElementsAreGatheredAndScattered) {
  std::vector<double> from(200), to(200, -1);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<double>(i);
  const KernelFunction kernel = compile(
      {"lazy_gather_double", "lazy_scatter_double"},
      "lazy_scatter_double((double*)p[1], 2, lazy_gather_double((const double*)p[0], -3, 3), 3);");
  void* const pointers[] = {&from[100], to.data()};

  kernel(pointers, nullptr, nullptr, 0, 0);

  EXPECT_EQ(to[0], 100);
  EXPECT_EQ(to[2], 97);
  EXPECT_EQ(to[4], 94);
  EXPECT_EQ(to[6], -1);
  EXPECT_EQ(to[1], -1);
}

TEST_P(PreludeOnTargetTest, LanesAreReduced) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> x(lanes());
  for (int i = 0; i < lanes(); ++i) x[i] = static_cast<float>(i + 1);
  std::vector<float> with_nan = x;
  with_nan.back() = nan;
  std::vector<float> result(5);
  const KernelFunction kernel = compile(
      {"lazy_load_float", "lazy_hsum:v_float", "lazy_hmin:v_float", "lazy_hmax:v_float",
       "lazy_hor:v_bool", "lazy_hand:v_bool", "lazy_is_nan:v_float"},
      "auto* result = (float*)p[2];\n"
      "auto x = lazy_load_float((const float*)p[0]), y = lazy_load_float((const float*)p[1]);\n"
      "result[0] = lazy_hsum(x); result[1] = lazy_hmax(x); result[2] = lazy_hmin(y);\n"
      "result[3] = lazy_hor(lazy_is_nan(y)); result[4] = lazy_hand(lazy_is_nan(y));");
  void* const pointers[] = {x.data(), with_nan.data(), result.data()};

  kernel(pointers, nullptr, nullptr, 0, 0);

  EXPECT_EQ(result[0], static_cast<float>(lanes() * (lanes() + 1)) / 2);
  EXPECT_EQ(result[1], static_cast<float>(lanes()));
  EXPECT_TRUE(std::isnan(result[2]));
  EXPECT_EQ(result[3], 1);
  EXPECT_EQ(result[4], 0);
}

}  // namespace
}  // namespace torch_lazy
