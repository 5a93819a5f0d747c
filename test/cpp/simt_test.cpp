// The emulator runs kernels as a GPU would, finds each kind of defect and names it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "simt_device.h"

namespace torch_lazy::simt {
namespace {

TEST(Simt, ASoundKernelRunsInAllThreadsAndIsNotReported) {
  Device device(1000);

  const Report report = device.run("if (i < n) y[i] = 2 * x[i] + 1;", {8}, {128});

  EXPECT_EQ(report.text(), "");
  for (int64_t i = 0; i < device.n; ++i) ASSERT_EQ(device.y[i], 2 * i + 1) << i;
}

// The lines of bodies count from 3.

TEST(Simt, AnAccessPastTheEndNamesThreadBlockAddressAndLine) {
  Device device(100);

  const Report report = device.run("y[i] = x[i];", {1}, {128});

  EXPECT_TRUE(report.has(Defect::kOutOfBounds));
  EXPECT_CONTAINS(report.text(),
                  "out of bounds: line 3: y[i] = x[i];: thread (100, 0, 0) of block (0, 0, 0) "
                  "reads 4 bytes at x + 400 of 400 bytes (and 27 times more)");
  EXPECT_CONTAINS(report.text(), "writes 4 bytes at y + 400");
}

TEST(Simt, AnAccessBeforeTheStartIsOutOfBounds) {
  Device device(64);

  const Report report = device.run("y[i] = x[i - 1];", {1}, {64});

  EXPECT_CONTAINS(report.text(), "reads 4 bytes at x - 4");
}

TEST(Simt, AHostPointerIsOutOfBounds) {
  Device device(32);
  float host = 0;
  device.x = &host;

  const Report report = device.run("y[i] = *x;", {1}, {32});

  EXPECT_CONTAINS(report.text(), "not the device's memory");
}

TEST(Simt, AVectorAccessHasToBeAligned) {
  Device device(128, 4);

  const Report report =
      device.run("if (i < 16) *(float4*)(y + 4 * i) = *(const float4*)(x + 4 * i);", {1}, {32});

  EXPECT_CONTAINS(report.text(), "unaligned: line 3");
  EXPECT_CONTAINS(report.text(), "reads 16 bytes at x + 0, which is not a multiple of 16");
  EXPECT_EQ(device.y[63], 63);
}

TEST(Simt, MemoryThatNothingHasWrittenIsNotToBeRead) {
  Device device(32);

  const Report report = device.run("y[i] += x[i];", {1}, {32});

  EXPECT_CONTAINS(report.text(),
                  "uninitialized: line 3: y[i] += x[i];: thread (0, 0, 0) of block "
                  "(0, 0, 0) reads y + 0, which nothing has written");
}

TEST(Simt, SharedMemoryHoldsNothingWhenABlockBegins) {
  Device device(64);

  const Report report = device.run(
      "__shared__ float cell[32];\n"
      "if (blockIdx.x == 0) cell[threadIdx.x] = 1;\n"
      "y[i] = cell[threadIdx.x];",
      {2}, {32});

  EXPECT_CONTAINS(report.text(),
                  "uninitialized: line 5: y[i] = cell[threadIdx.x];: thread (0, 0, "
                  "0) of block (1, 0, 0) reads shared kernel::cell + 0");
}

// Each thread reads what its neighbour in the block has written, after `barrier`.
std::string shift(const std::string& barrier) {
  return "__shared__ float cell[64];\n"
         "cell[threadIdx.x] = x[i];\n" +
         barrier + "\n" + "y[i] = cell[threadIdx.x ^ NEIGHBOUR];";
}

TEST(Simt, ThreadsThatShareMemoryWithoutABarrierRace) {
  Device device(64);

  const Report report = device.run("#define NEIGHBOUR 1\n" + shift(""), {1}, {64});

  EXPECT_CONTAINS(report.text(), "race: line 7");
  EXPECT_CONTAINS(report.text(),
                  "reads shared kernel::cell + 0, which thread (0, 0, 0) of block "
                  "(0, 0, 0) writes without a barrier between, in line 5");
}

TEST(Simt, ABarrierOrdersTheThreadsOfABlock) {
  Device device(64);

  const Report report = device.run("#define NEIGHBOUR 32\n" + shift("__syncthreads();"), {1}, {64});

  EXPECT_EQ(report.text(), "");
  EXPECT_EQ(device.y[0], 32);
}

TEST(Simt, ABarrierOfTheWarpOrdersItsLanesOnly) {
  Device device(64);

  const Report in_warp = device.run("#define NEIGHBOUR 1\n" + shift("__syncwarp();"), {1}, {64});
  const Report across = device.run("#define NEIGHBOUR 32\n" + shift("__syncwarp();"), {1}, {64});

  EXPECT_EQ(in_warp.text(), "");
  EXPECT_TRUE(across.has(Defect::kRace));
}

TEST(Simt, AWriteAfterReadsOfOthersNeedsABarrierToo) {
  Device device(64);

  const Report report = device.run(
      "__shared__ float cell;\n"
      "if (threadIdx.x == 0) cell = 1;\n"
      "__syncthreads();\n"
      "y[i] = cell;\n"
      "if (threadIdx.x == 63) cell = 2;",
      {1}, {64});

  EXPECT_CONTAINS(report.text(), "line 7: if (threadIdx.x == 63) cell = 2;: thread (63, 0, 0)");
  EXPECT_CONTAINS(report.text(), "reads without a barrier between, in line 6");
}

TEST(Simt, BlocksRaceOnGlobalMemory) {
  Device device(32);

  const Report report = device.run("y[threadIdx.x] = blockIdx.x;", {2}, {32});

  EXPECT_CONTAINS(report.text(),
                  "race: line 3: y[threadIdx.x] = blockIdx.x;: thread (0, 0, 0) of block (1, 0, 0) "
                  "writes y + 0, which thread (0, 0, 0) of block (0, 0, 0) writes");
}

TEST(Simt, AtomicChangesDoNotRace) {
  Device device(64);
  device.memory.mark_initialized(device.y, 4);
  device.y[0] = 0;

  const Report report = device.run("atomicAdd(y, x[i]);", {2}, {32});

  EXPECT_EQ(report.text(), "");
  EXPECT_EQ(device.y[0], 63 * 64 / 2);
}

TEST(Simt, AtomicChangesReturnWhatWasThere) {
  Device device(32);
  device.memory.mark_initialized(device.y, 32 * sizeof(float));
  std::fill_n(device.y, 32, 0.0F);

  const Report report = device.run(
      "int* const cells = (int*)y;\n"
      "atomicMax(cells, (int)threadIdx.x);\n"
      "atomicOr((unsigned*)cells + 1, 1u << threadIdx.x);\n"
      "if (atomicCAS(cells + 2, 0, 7) == 0) cells[3] = 1;\n"
      "atomicAdd((unsigned long long*)(cells + 4), 1ull);\n"
      "if (atomicExch(cells + 6, 1) == 0) cells[7] = atomicMin(cells + 8, -1);",
      {1}, {32});

  const auto* const cells = reinterpret_cast<const int*>(device.y);
  EXPECT_EQ(report.text(), "");
  EXPECT_EQ(std::vector<int>(cells, cells + 9), (std::vector<int>{31, -1, 7, 1, 32, 0, 1, 0, -1}));
}

TEST(Simt, VotesAndBoundsAreNvrtcs) {
  Device device(64);
  const auto program = Program::compile(
      "extern \"C\" __global__ void __launch_bounds__(64, 2) kernel(float* __restrict__ y) {\n"
      "  const unsigned odd = __ballot_sync(0xffffffffu, threadIdx.x & 1);\n"
      "  const bool any = __any_sync(0xffffffffu, threadIdx.x == 40);\n"
      "  y[threadIdx.x] = __popc(odd) + (any ? 100 : 0) + (__activemask() == ~0u ? 1000 : 0);\n"
      "}\n");
  void* parameters[] = {&device.y};

  const Report report = run(device.memory, {*program, "kernel", {1}, {64}, parameters});

  EXPECT_EQ(report.text(), "");
  EXPECT_EQ(device.y[0], 1016);
  EXPECT_EQ(device.y[63], 1116);
}

TEST(Simt, ABarrierThatSomeThreadsHaveLeftBehindIsDivergent) {
  Device device(64);

  const Report report =
      device.run("if (threadIdx.x >= 32) return;\n__syncthreads();\ny[i] = 1;", {1}, {64});

  EXPECT_CONTAINS(report.text(),
                  "divergence: line 4: __syncthreads();: thread (0, 0, 0) of block (0, 0, 0) waits "
                  "for 32 threads that have ended, the first (32, 0, 0)");
}

TEST(Simt, ThreadsThatWaitAtDifferentBarriersAreDivergent) {
  Device device(64);

  const Report report = device.run(
      "if (threadIdx.x < 32)\n__syncthreads();\nelse\n__syncthreads();\ny[i] = 1;", {1}, {64});

  EXPECT_CONTAINS(report.text(), "divergence: line 4: __syncthreads();");
  EXPECT_CONTAINS(report.text(), "32 threads that wait elsewhere, the first (32, 0, 0) in line 6");
}

TEST(Simt, AShuffleThatNotAllLanesReachIsDivergent) {
  Device device(32);

  const Report report = device.run(
      "float value = 0;\nif (threadIdx.x < 16) value = __shfl_xor_sync(0xffffffffu, x[i], 1);\n"
      "y[i] = value;",
      {1}, {32});

  EXPECT_CONTAINS(report.text(), "divergence: line 4");
  EXPECT_CONTAINS(report.text(), "16 threads that have ended, the first (16, 0, 0)");
}

TEST(Simt, ShufflesMoveValuesBetweenLanes) {
  Device device(32);

  const Report report = device.run(
      "const float own = x[i];\n"
      "const float sum = __shfl_sync(0xffffffffu, own, 3) +\n"
      "    100 * __shfl_up_sync(0xffffffffu, own, 1) +\n"
      "    10000 * __shfl_down_sync(0xffffffffu, own, 1, 16);\n"
      "y[i] = __all_sync(0xffffffffu, own < 32) ? sum : 0;",
      {1}, {32});

  EXPECT_EQ(report.text(), "");
  EXPECT_EQ(device.y[0], 3 + 0 + 10000);
  EXPECT_EQ(device.y[5], 3 + 400 + 60000);
  EXPECT_EQ(device.y[15], 3 + 1400 + 150000);
}

TEST(Simt, DynamicSharedMemoryHasTheSizeOfTheLaunch) {
  Device device(32);
  const auto program = Program::compile(
      "extern \"C\" __global__ void kernel(float* y) {\n"
      "  extern __shared__ float cells[];\n"
      "  cells[threadIdx.x] = 1;\n"
      "  y[threadIdx.x] = cells[threadIdx.x];\n"
      "}\n");
  void* parameters[] = {&device.y};

  const Report report = run(device.memory, {*program, "kernel", {1}, {32}, parameters, 64});

  EXPECT_CONTAINS(report.text(),
                  "thread (16, 0, 0) of block (0, 0, 0) writes 4 bytes at shared "
                  "cells + 64 of 64 bytes");
}

TEST(Simt, AKernelThatDoesNotCompileSaysWhere) {
  try {
    Program::compile("extern \"C\" __global__ void kernel() {\n  int x = y;\n}\n");
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_CONTAINS(std::string(error.what()), "kernel.cu:2:11: error");
  }
}

TEST(Simt, UnknownPtxIsRefusedByItsText) {
  try {
    Program::compile(
        "extern \"C\" __global__ void kernel(float* y) {\n"
        "  asm(\"strange.f32 %0;\" : \"=f\"(*y));\n}\n");
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_CONTAINS(std::string(error.what()), "does not know the PTX \"strange.f32 $0;\"");
  }
}

TEST(Simt, AFillOfMemoryIsRefusedByItsLine) {
  try {
    Program::compile(
        "extern \"C\" __global__ void kernel(float* y) {\n"
        "  __builtin_memset(y, 0, 64);\n}\n");
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_CONTAINS(std::string(error.what()), "line 2: the emulator takes no memset");
  }
}

TEST(Simt, ALaunchThatADriverWouldRefuseIsRefused) {
  Device device(32);

  EXPECT_THROW(device.run("", {1}, {2048}), std::invalid_argument);
  EXPECT_THROW(device.run("", {1, 65536}, {32}), std::invalid_argument);
}

TEST(Simt, MoreSharedMemoryThanUsualHasToBeAllowed) {
  Device device(32);
  const auto program = Program::compile(
      "extern \"C\" __global__ void kernel(float* y) {\n"
      "  extern __shared__ float cells[];\n"
      "  y[threadIdx.x] = cells[16384 + threadIdx.x] = 1;\n"
      "}\n"
      "extern \"C\" __global__ void other(float* y) {\n"
      "  __shared__ float cells[8192];\n"
      "  y[threadIdx.x] = cells[threadIdx.x] = 1;\n"
      "}\n");
  void* parameters[] = {&device.y};
  constexpr size_t kBytes = 68 << 10;

  EXPECT_THROW(run(device.memory, {*program, "kernel", {1}, {32}, parameters, kBytes}),
               std::invalid_argument);
  // What another kernel of the source declares does not count.
  const Report report =
      run(device.memory, {*program, "kernel", {1}, {32}, parameters, kBytes, kBytes});

  EXPECT_EQ(report.text(), "");
}

}  // namespace
}  // namespace torch_lazy::simt
