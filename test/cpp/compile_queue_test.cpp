#include "runtime/compile_queue.h"

#include <gtest/gtest.h>

#include <sched.h>
#include <unistd.h>

#include <atomic>

namespace torch_lazy {
namespace {

struct Job final : CompileJob {
  explicit Job(bool waits_for_a_core) : waits_for_a_core(waits_for_a_core) {}
  void compile() override { ++compiled; }
  bool put_off() override {
    asked = true;
    return waits_for_a_core;
  }

  const bool waits_for_a_core;
  std::atomic<int> compiled{0};
  std::atomic<bool> asked{false};
};

// On one core none is ever idle.
class CompileQueueOnOneCore : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(sched_getaffinity(getpid(), sizeof before_, &before_), 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int core = 0; CPU_COUNT(&one) == 0; ++core)
      if (CPU_ISSET(core, &before_)) CPU_SET(core, &one);
    ASSERT_EQ(sched_setaffinity(getpid(), sizeof one, &one), 0);
  }
  void TearDown() override { sched_setaffinity(getpid(), sizeof before_, &before_); }

 private:
  cpu_set_t before_{};
};

TEST_F(CompileQueueOnOneCore, LeavesOutWhatWaitsForAnIdleCore) {
  const auto job = std::make_shared<Job>(true);

  enqueue_compile(job);
  wait_for_compiles({});

  EXPECT_TRUE(job->asked);
  EXPECT_EQ(job->compiled, 0);
}

TEST_F(CompileQueueOnOneCore, CompilesWhatDoesNotWaitForOne) {
  const auto job = std::make_shared<Job>(false);

  enqueue_compile(job);
  wait_for_compiles({});

  EXPECT_EQ(job->compiled, 1);
}

TEST_F(CompileQueueOnOneCore, TakesWhatItLeftOutAgain) {
  const auto job = std::make_shared<Job>(true);
  for (int i = 0; i < 2; ++i) {
    job->asked = false;
    enqueue_compile(job);
    wait_for_compiles({});
    EXPECT_TRUE(job->asked);
  }
}

}  // namespace
}  // namespace torch_lazy
