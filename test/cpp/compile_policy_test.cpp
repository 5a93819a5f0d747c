#include "runtime/compile_policy.h"

#include <gtest/gtest.h>

#include "base/pass_times.h"

namespace torch_lazy {
namespace {

using std::chrono::hours;
using std::chrono::nanoseconds;

class CompilePolicy : public ::testing::Test {
 protected:
  // Other tests of the process compile traces that never run.
  void SetUp() override {
    for (int i = 0; i < 10'000; ++i) count_first_run();
  }
};

TEST_F(CompilePolicy, WithACoreToSpareATraceIsCompiledAtOnce) {
  EXPECT_TRUE(compiling_pays(1000, 1, nanoseconds(0), true));
}

TEST_F(CompilePolicy, WithoutOneACompileWaitsUntilItsTraceHasTakenTime) {
  EXPECT_FALSE(compiling_pays(1000, 1, nanoseconds(1000), false));
  EXPECT_TRUE(compiling_pays(1000, 1, hours(10), false));
}

TEST_F(CompilePolicy, ExpensiveCompilesMakeTheNextOneWaitLonger) {
  const nanoseconds spent = hours(10);
  ASSERT_TRUE(compiling_pays(1000, 1, spent, false));
  const auto long_compiles = int64_t(nanoseconds(hours(100'000)).count());

  count_compiled(1000);
  add_pass_time("test", long_compiles);
  const bool pays = compiling_pays(1000, 1, spent, false);
  add_pass_time("test", -long_compiles);

  EXPECT_FALSE(pays);
}

TEST_F(CompilePolicy, TracesWaitForMoreRecordingsWhereOthersNeverRan) {
  for (int i = 0; i < 100; ++i) count_ready_trace();
  const bool at_once = compiling_pays(1000, 1, nanoseconds(0), true);
  const bool after_many = compiling_pays(1000, 20, nanoseconds(0), true);
  for (int i = 0; i < 100; ++i) count_first_run();

  EXPECT_FALSE(at_once);
  EXPECT_TRUE(after_many);
  EXPECT_TRUE(compiling_pays(1000, 1, nanoseconds(0), true));
}

}  // namespace
}  // namespace torch_lazy
