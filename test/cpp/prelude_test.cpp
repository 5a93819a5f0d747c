// The prelude's text: which functions it has, and which of them a kernel gets.

#include "codegen/prelude.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <string>

#include "prelude_on_target.h"

namespace torch_lazy {
namespace {

using codegen::prelude_for;
using codegen::prelude_has;
using codegen::Target;

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

TEST_P(PreludeOnTargetTest, EveryFunctionCompiles) {
  EXPECT_NE(compile(all_functions(target()), ""), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Targets, PreludeOnTargetTest, testing::ValuesIn(cpu_prelude_targets()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace torch_lazy
