#include "runtime/compile_policy.h"

#include <gtest/gtest.h>

#include "base/pass_times.h"

namespace torch_lazy {
namespace {

using std::chrono::hours;
using std::chrono::nanoseconds;

TEST(CompilePolicy, WithACoreToSpareATraceIsCompiledAtOnce) {
  EXPECT_TRUE(compiling_pays(1000, nanoseconds(0), false));
}

TEST(CompilePolicy, OnOneCoreACompileWaitsUntilItsTraceHasTakenTime) {
  EXPECT_FALSE(compiling_pays(1000, nanoseconds(1000), true));
  EXPECT_TRUE(compiling_pays(1000, hours(10), true));
}

TEST(CompilePolicy, ExpensiveCompilesMakeTheNextOneWaitLonger) {
  const nanoseconds spent = hours(10);
  ASSERT_TRUE(compiling_pays(1000, spent, true));
  const auto long_compiles = int64_t(nanoseconds(hours(100'000)).count());

  count_compiled(1000);
  add_pass_time("test", long_compiles);
  const bool pays = compiling_pays(1000, spent, true);
  add_pass_time("test", -long_compiles);

  EXPECT_FALSE(pays);
}

}  // namespace
}  // namespace torch_lazy
