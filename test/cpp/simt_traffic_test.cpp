// The emulator counts what a memory controller and the banks of shared memory would see.

#include <gtest/gtest.h>

#include "simt_device.h"

namespace torch_lazy::simt {
namespace {

TEST(SimtTraffic, NeighboursInAWarpTouchOnlySectorsThatTheyNeed) {
  Device device(256);

  const Report report = device.run("y[i] = x[i];", {2}, {128});

  EXPECT_EQ(report.text(), "");
  EXPECT_EQ(report.loads.requests, 8);
  EXPECT_EQ(report.loads.bytes, 1024);
  EXPECT_EQ(report.loads.distinct_bytes, 1024);
  EXPECT_EQ(report.loads.sectors, 32);
  EXPECT_EQ(report.loads.sectors_needed, 32);
  EXPECT_EQ(report.stores.sectors, 32);
}

TEST(SimtTraffic, AStrideOfEightFloatsTouchesASectorALane) {
  Device device(1024);

  const Report report = device.run("y[i] = x[8 * i];", {1}, {128});

  EXPECT_EQ(report.loads.sectors, 128);
  EXPECT_EQ(report.loads.sectors_needed, 16);
}

TEST(SimtTraffic, AMisalignedRowTouchesASectorMore) {
  Device device(64);

  const Report report = device.run("y[i] = x[i + 1];", {1}, {32});

  EXPECT_EQ(report.loads.sectors, 5);
  EXPECT_EQ(report.loads.sectors_needed, 4);
}

TEST(SimtTraffic, LanesThatReadOneElementNeedItOnce) {
  Device device(64);

  const Report report = device.run("y[i] = x[0];", {2}, {32});

  EXPECT_EQ(report.loads.bytes, 256);
  EXPECT_EQ(report.loads.distinct_bytes, 4);
  EXPECT_EQ(report.loads.sectors, 2);
  EXPECT_EQ(report.loads.sectors_needed, 2);
}

TEST(SimtTraffic, AVectorOfFourFloatsIsOneAccess) {
  Device device(128);

  const Report report = device.run("((float4*)y)[i] = __ldg((const float4*)x + i);", {1}, {32});

  EXPECT_EQ(report.text(), "");
  EXPECT_EQ(report.loads.requests, 1);
  EXPECT_EQ(report.loads.sectors, 16);
  EXPECT_EQ(report.stores.requests, 1);
}

TEST(SimtTraffic, AnAlignedStructureOfAKernelsOwnIsOneAccess) {
  Device device(128);

  const Report report = device.run(
      "struct __align__(16) Eight { unsigned short values[8]; };\n"
      "Eight eight = ((const Eight*)x)[i];\n"
      "for (int k = 0; k < 8; ++k) eight.values[k] += 1;\n"
      "((Eight*)y)[i] = eight;",
      {1}, {32});

  EXPECT_EQ(report.text(), "");
  EXPECT_EQ(report.loads.requests, 1);
  EXPECT_EQ(report.stores.requests, 1);
  EXPECT_EQ(report.stores.bytes, 512);
}

TEST(SimtTraffic, LanesThatLeaveALoopEarlyAreCountedWithTheOthers) {
  Device device(1000);

  const Report report = device.run("for (int at = i; at < n; at += 32) y[at] = x[at];", {1}, {32});

  EXPECT_EQ(report.loads.requests, 32);
  EXPECT_EQ(report.loads.sectors, 125);
}

TEST(SimtTraffic, LanesThatMeetInABankTakeTurns) {
  Device device(32);

  const Report report = device.run(
      "__shared__ float tile[32 * 32];\n"
      "tile[threadIdx.x * 32] = x[i];\n"
      "y[i] = tile[threadIdx.x * 32];",
      {1}, {32});

  EXPECT_EQ(report.shared_stores.passes, 32);
  EXPECT_EQ(report.shared_stores.passes_needed, 1);
}

}  // namespace
}  // namespace torch_lazy::simt
