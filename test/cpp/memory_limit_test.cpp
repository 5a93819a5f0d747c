// What is read of a container's limit of memory, from files as the kernel shows them.

#include "runtime/memory_limit.h"

#include <gtest/gtest.h>

#include "control_groups_of_tests.h"

namespace torch_lazy {
namespace {

using MemoryLimitTest = ControlGroupsTest;

TEST_F(MemoryLimitTest, IsTheLeastOfAllGroupsAroundAProcess) {
  write("proc/self/cgroup", "0::/user.slice/job.service\n");
  write("sys/fs/cgroup/user.slice/job.service/memory.max", "max\n");
  write("sys/fs/cgroup/user.slice/memory.max", "2097152\n");

  EXPECT_EQ(memory_limit(root_), 2097152u);
}

TEST_F(MemoryLimitTest, OfTheOldHierarchyIsFoundThoughTheContainerSeesItsOwnPartOnly) {
  write("proc/self/cgroup", "2:memory:/docker/ab\n1:cpu:/docker/cd\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "1048576\n");

  EXPECT_EQ(memory_limit(root_), 1048576u);
}

TEST_F(MemoryLimitTest, IsTheMachinesWhereNothingIsLimited) {
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/memory.max", "max\n");

  EXPECT_EQ(memory_limit(root_),
            uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGESIZE)));
}

}  // namespace
}  // namespace torch_lazy
