// What is read of a container's limit of processor time, from files as the kernel shows them.

#include "runtime/processor_quota.h"

#include <gtest/gtest.h>

#include "control_groups_of_tests.h"

namespace torch_lazy {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using std::filesystem::path;

class ProcessorQuotaTest : public ControlGroupsTest {
 protected:
  // Of a group in the unified hierarchy.
  void write_unified(const path& group, const char* limit, int64_t used_microseconds) {
    const path folder = "sys/fs/cgroup" / group;
    write(folder / "cpu.max", limit);
    write(folder / "cpu.stat",
          "usage_usec " + std::to_string(used_microseconds) + "\nuser_usec 1\n");
  }

  // Of a group in the old ones.
  void write_old(const path& group, const char* quota, int64_t used_nanoseconds) {
    const path folder = "sys/fs/cgroup";
    write(folder / "cpu" / group / "cpu.cfs_quota_us", quota);
    write(folder / "cpu" / group / "cpu.cfs_period_us", "100000\n");
    write(folder / "cpuacct" / group / "cpuacct.usage", std::to_string(used_nanoseconds));
  }
};

TEST_F(ProcessorQuotaTest, OfAContainerIsInTheRootOfWhatItSees) {
  write("proc/self/cgroup", "0::/\n");
  write_unified("", "250000 100000\n", 1234);

  const auto quotas = processor_quotas(root_);

  ASSERT_EQ(quotas.size(), 1u);
  EXPECT_DOUBLE_EQ(quotas[0].cores, 2.5);
  EXPECT_EQ(quotas[0].used, microseconds(1234));
}

TEST_F(ProcessorQuotaTest, AreThoseOfAllGroupsAroundAProcess) {
  write("proc/self/cgroup", "0::/user.slice/job.service\n");
  write_unified("user.slice/job.service", "max 100000\n", 1);
  write_unified("user.slice", "400000 100000\n", 2);

  const auto quotas = processor_quotas(root_);

  ASSERT_EQ(quotas.size(), 1u);
  EXPECT_DOUBLE_EQ(quotas[0].cores, 4);
  EXPECT_EQ(quotas[0].used, microseconds(2));
}

TEST_F(ProcessorQuotaTest, OfTheOldHierarchiesIsFoundThoughTheContainerSeesItsOwnPartOnly) {
  write("proc/self/cgroup", "3:cpuset:/docker/ab\n2:cpu,cpuacct:/docker/ab\n0::/\n");
  write_old("", "150000\n", 987654321);

  const auto quotas = processor_quotas(root_);

  ASSERT_EQ(quotas.size(), 1u);
  EXPECT_DOUBLE_EQ(quotas[0].cores, 1.5);
  EXPECT_EQ(quotas[0].used, nanoseconds(987654321));
}

TEST_F(ProcessorQuotaTest, AreNoneOfAGroupWhoseTimeIsCountedInAnother) {
  write("proc/self/cgroup", "2:cpu:/a\n1:cpuacct:/b\n");
  write_old("a", "150000\n", 1000);
  write_old("b", "-1\n", 999999);

  EXPECT_TRUE(processor_quotas(root_).empty());
}

TEST_F(ProcessorQuotaTest, AreNoneWhereNothingIsLimitedOrNothingTells) {
  EXPECT_TRUE(processor_quotas(root_).empty());

  write("proc/self/cgroup", "1:cpu:/\n0::/\n");
  write_old("", "-1\n", 1);

  EXPECT_TRUE(processor_quotas(root_).empty());
}

}  // namespace
}  // namespace torch_lazy
