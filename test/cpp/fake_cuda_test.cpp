// The fake driver and NVRTC behave as the real ones do where programs go wrong: order, errors,
// contexts, forks.

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "codegen/launch_arguments.h"
#include "codegen/printer.h"
#include "fake_driver.h"
#include "loop_builder.h"

namespace torch_lazy {
namespace {

using tests::compile;
using tests::Compiled;
using tests::cuda;
using tests::FakeCuda;
using tests::kAdd;
using tests::kBytes;
using tests::nvrtc;

TEST_F(FakeCuda, AKernelReadsWhatWasCopiedAndItsResultComesBack) {
  upload(x, ones.data(), nullptr);

  ASSERT_EQ(launch(x, y, 2), CUDA_SUCCESS);

  EXPECT_EQ(first(y), 3);
  EXPECT_EQ(findings(), "");
}

TEST_F(FakeCuda, WorkIsDoneOnlyWhenSomeoneWaits) {
  CUstream own = stream();
  float* const result = pinned(-1);
  upload(x, ones.data(), own);
  launch(x, y, 2, own);
  cuda().call("cuMemcpyDtoHAsync_v2", static_cast<void*>(result), y, kBytes, own);

  EXPECT_EQ(result[0], -1);
  cuda().call("cuStreamSynchronize", own);
  EXPECT_EQ(result[0], 3);
}

TEST_F(FakeCuda, PinnedMemoryIsReadWhenTheCopyHappensAndOtherMemoryAtTheCall) {
  CUstream own = stream();
  float* const source = pinned(1);
  std::vector<float> pageable(32, 1.0F);
  upload(x, source, own);
  upload(y, pageable.data(), own);

  source[0] = pageable[0] = 5;

  cuda().call("cuStreamSynchronize", own);
  EXPECT_EQ(first(x), 5);
  EXPECT_EQ(first(y), 1);
}

TEST_F(FakeCuda, AnEventOrdersStreams) {
  CUstream producer = stream(CU_STREAM_NON_BLOCKING), consumer = stream(CU_STREAM_NON_BLOCKING);
  CUevent made = nullptr;
  cuda().call("cuEventCreate", &made, 0u);
  upload(x, ones.data(), producer);
  cuda().call("cuEventRecord", made, producer);
  cuda().call("cuStreamWaitEvent", consumer, made, 0u);
  launch(x, y, 2, consumer);

  EXPECT_EQ(cuda().call("cuStreamSynchronize", consumer), CUDA_SUCCESS);

  EXPECT_EQ(findings(), "");
  EXPECT_EQ(first(y), 3);
}

TEST_F(FakeCuda, AMissingEventShowsAsMemoryThatNothingHasWritten) {
  CUstream producer = stream(CU_STREAM_NON_BLOCKING), consumer = stream(CU_STREAM_NON_BLOCKING);
  upload(x, ones.data(), producer);
  launch(x, y, 2, consumer);

  EXPECT_EQ(cuda().call("cuStreamSynchronize", consumer), CUDA_ERROR_LAUNCH_FAILED);

  EXPECT_NE(findings().find("uninitialized: line 2"), std::string::npos);
}

TEST_F(FakeCuda, TheLegacyStreamWaitsForBlockingStreamsOnly) {
  CUstream blocking = stream(), non_blocking = stream(CU_STREAM_NON_BLOCKING);
  const std::vector<float> zeros(32);
  cuda().call("cuMemcpyHtoD_v2", y, static_cast<const void*>(zeros.data()), kBytes);
  upload(x, ones.data(), blocking);
  upload(y, ones.data(), non_blocking);

  EXPECT_EQ(first(x), 1);
  EXPECT_EQ(first(y), 0);
}

TEST_F(FakeCuda, AFaultIsToldWhenSomeoneWaitsAndStays) {
  const CUdeviceptr small = allocate(64);
  upload(x, ones.data(), nullptr);

  EXPECT_EQ(launch(x, small, 2), CUDA_SUCCESS);

  EXPECT_EQ(synchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  CUdeviceptr more = 0;
  EXPECT_EQ(cuda().call("cuMemAlloc_v2", &more, kBytes), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_NE(findings().find("out of bounds: line 2"), std::string::npos);
}

TEST_F(FakeCuda, MemoryThatIsFreedBehindAKernelIsThereForItOnly) {
  upload(x, ones.data(), nullptr);
  launch(x, y, 2);
  cuda().call("cuMemFreeAsync", x, CUstream{nullptr});
  EXPECT_EQ(first(y), 3);

  launch(x, y, 2);

  EXPECT_EQ(synchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_NE(findings().find("which has been freed"), std::string::npos);
}

TEST_F(FakeCuda, ALaunchThatCannotBeIsRefusedAtOnce) {
  EXPECT_EQ(launch(x, y, 2, nullptr, 2048), CUDA_ERROR_INVALID_VALUE);
}

// A block of a device may have more shared memory than 48 KiB if its kernel has asked before.
TEST_F(FakeCuda, SharedMemoryIsThereForKernelsThatHaveAskedForIt) {
  const auto launch_with = [&](unsigned bytes) {
    float number = 2;
    void* parameters[] = {&x, &y, &number};
    return cuda().call("cuLaunchKernel", add, 1u, 1u, 1u, 32u, 1u, 1u, bytes, CUstream{nullptr},
                       static_cast<void**>(parameters), static_cast<void**>(nullptr));
  };
  const auto ask_for = [&](int bytes) {
    return cuda().call("cuKernelSetAttribute", CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                       bytes, add, 0);
  };
  upload(x, ones.data(), nullptr);

  EXPECT_EQ(launch_with(48 << 10), CUDA_SUCCESS);
  EXPECT_EQ(launch_with(64 << 10), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(ask_for(228 << 10), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(ask_for(64 << 10), CUDA_SUCCESS);
  EXPECT_EQ(launch_with(64 << 10), CUDA_SUCCESS);
  EXPECT_EQ(launch_with((64 << 10) + 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(first(y), 3);
}

TEST_F(FakeCuda, AskingForAnEventGetsThereInTheEnd) {
  CUstream own = stream();
  CUevent made = nullptr;
  cuda().call("cuEventCreate", &made, 0u);
  upload(x, ones.data(), own);
  cuda().call("cuEventRecord", made, own);

  EXPECT_EQ(cuda().call("cuEventQuery", made), CUDA_ERROR_NOT_READY);
  int asked = 1;
  while (cuda().call("cuEventQuery", made) == CUDA_ERROR_NOT_READY) ++asked;
  EXPECT_LE(asked, 2);
}

TEST_F(FakeCuda, TheTimeBetweenEventsIsKnownWhenTheStreamHasPassedThem) {
  CUstream own = stream();
  CUevent start = nullptr, end = nullptr;
  float milliseconds = -1;
  for (CUevent* event : {&start, &end}) {
    cuda().call("cuEventCreate", event, 0u);
    cuda().call("cuEventRecord", *event, own);
  }

  EXPECT_EQ(cuda().call("cuEventElapsedTime", &milliseconds, start, end), CUDA_ERROR_NOT_READY);
  cuda().call("cuStreamSynchronize", own);
  EXPECT_EQ(cuda().call("cuEventElapsedTime", &milliseconds, start, end), CUDA_SUCCESS);

  EXPECT_GE(milliseconds, 0);
}

TEST_F(FakeCuda, WhatTheHostSaysThatItHasWrittenIsInitialized) {
  cuda().call("fake_cuda_access_from_host", x, kBytes, 1);
  launch(x, y, 2);

  EXPECT_EQ(synchronize(), CUDA_SUCCESS);
  EXPECT_EQ(findings(), "");
}

TEST_F(FakeCuda, WhatTheHostReadsHasToBeAllocated) {
  cuda().call("cuMemFree_v2", x);

  EXPECT_EQ(cuda().call("fake_cuda_access_from_host", x, kBytes, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_NE(findings().find("reads 128 bytes at"), std::string::npos);
}

TEST_F(FakeCuda, AThreadWithoutAContextCanLoadLibrariesOnly) {
  const std::string image = compile(kAdd).cubin;
  std::thread([&] {
    CUmodule refused = nullptr;
    CUlibrary library = nullptr;
    EXPECT_EQ(cuda().call("cuModuleLoadData", &refused, static_cast<const void*>(image.data())),
              CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuda().call("cuLibraryLoadData", &library, static_cast<const void*>(image.data()),
                          static_cast<void*>(nullptr), static_cast<void**>(nullptr), 0u,
                          static_cast<void*>(nullptr), static_cast<void**>(nullptr), 0u),
              CUDA_SUCCESS);
  }).join();
}

TEST_F(FakeCuda, AForkedChildHasNoDriver) {
  const pid_t child = fork();
  if (child == 0) {
    CUdeviceptr pointer = 0;
    const bool refused =
        cuda().call("cuMemAlloc_v2", &pointer, kBytes) == CUDA_ERROR_NOT_INITIALIZED &&
        cuda().call("cuInit", 0u) == CUDA_ERROR_NOT_INITIALIZED;
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(FakeCuda, AnImageOfAnotherCompilerIsRefused) {
  CUmodule refused = nullptr;
  EXPECT_EQ(cuda().call("cuModuleLoadData", &refused, static_cast<const void*>("\177ELF")),
            CUDA_ERROR_INVALID_IMAGE);
}

TEST(FakeNvrtc, SaysWhereASourceIsWrong) {
  const Compiled compiled = compile("extern \"C\" __global__ void kernel() {\n  int x = y;\n}\n");

  EXPECT_EQ(compiled.result, 6);
  EXPECT_NE(compiled.log.find("kernel.cu(2): error"), std::string::npos) << compiled.log;
}

TEST(FakeNvrtc, MakesNoCubinForAVirtualArchitecture) {
  EXPECT_EQ(compile(kAdd, {"--gpu-architecture=compute_90"}).cubin, "");
}

TEST(FakeNvrtc, RefusesOptionsThatItDoesNotKnow) {
  EXPECT_EQ(compile(kAdd, {"--fast"}).result, 5);
}

TEST(FakeNvrtc, RefusesMoreParametersThanADeviceTakes) {
  const Compiled compiled = compile(
      "struct Many { long long words[4096]; };\n"
      "extern \"C\" __global__ void kernel(const Many many, float* y) { *y = many.words[0]; }\n");

  EXPECT_EQ(compiled.result, 6);
  EXPECT_NE(compiled.log.find("32776 bytes required"), std::string::npos) << compiled.log;
}

TEST_F(FakeCuda, RunsWhatIsPrintedForCuda) {
  codegen::LoopBuilder builder(codegen::Axis::kParallel, {codegen::slot(0)}, {});
  builder.kernel.size_slots = 1;
  const uint32_t in = builder.input(codegen::Type::kFloat);
  const uint32_t out = builder.output(codegen::Type::kFloat);
  const auto value = builder.load(in, {codegen::one()});
  builder.store(out, {codegen::one()}, builder.op(codegen::Op::kAdd, {value, builder.number(0)}));
  const codegen::PrintedKernel printed =
      codegen::print_kernel(builder.kernel, {.kind = codegen::Target::Kind::kCuda});
  const Compiled compiled = compile(printed.source, {"--gpu-architecture=sm_90", "--fmad=false"});
  ASSERT_EQ(compiled.result, 0) << compiled.log;
  CUmodule own = nullptr;
  CUfunction kernel = nullptr;
  cuda().call("cuModuleLoadData", &own, static_cast<const void*>(compiled.cubin.data()));
  cuda().call("cuModuleGetFunction", &kernel, own, printed.entry.c_str());
  upload(x, ones.data(), nullptr);
  struct {
    CUdeviceptr pointers[2];
    int64_t sizes[1];
    uint64_t numbers[1];
  } arguments{{x, y}, {32}, {codegen::number_field(2.5, /*as_float=*/true)}};
  int64_t begin = 0, end = 1;
  void* parameters[] = {&arguments, &begin, &end};

  cuda().call("cuLaunchKernel", kernel, 1u, 1u, 1u, 32u, 1u, 1u, 0u, CUstream{nullptr},
              static_cast<void**>(parameters), static_cast<void**>(nullptr));

  EXPECT_EQ(first(y), 3.5);
  EXPECT_EQ(findings(), "");
}

}  // namespace
}  // namespace torch_lazy
