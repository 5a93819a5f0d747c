// How kernels printed for CUDA use memory, which needs no GPU to be seen. The test
// CudaTraffic.Table prints a table:
//
//   build/torch_lazy_tests --gtest_filter='CudaTraffic.*'
//
// What its columns say: sectors touched for each that was needed, and bytes that threads read for
// each different one. 1.00 is all that can be wished for; a cache makes the second cheaper. Where
// NVIDIA's compiler is installed, registers of a thread and the widest access follow.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "cuda_traffic_cases.h"
#include "emulated_plan.h"
#include "nvrtc.h"

namespace torch_lazy {
namespace {

using tests::KernelReport;
using tests::TapeBuilder;
using tests::TrafficCase;
using Bounds = tests::TrafficBounds;

// As large as GPUs of data centers are.
constexpr codegen::GpuLimits kTrafficGpu{
    .multiprocessors = 128, .threads_per_multiprocessor = 2048, .shared_bytes_of_block = 227 << 10};

double ratio(int64_t a, int64_t b) {
  return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
}

bool has_wide_access(const std::string& ptx) {
  for (const char* type : {".v4.f32", ".v4.u32", ".v4.b32", ".v2.f64", ".v2.u64", ".v2.b64"}) {
    if (ptx.find(type) != std::string::npos) return true;
  }
  return false;
}

// As NVIDIA's compiler makes it. `is_main`: of a window's kernels the one that moves most.
void check_machine_code(const KernelReport& kernel, const Bounds& bounds, bool is_main) {
  const tests::Nvrtc& nvrtc = tests::Nvrtc::get();
  tests::NvrtcResult result;
  for (const char* architecture : {"sm_80", "sm_100", "sm_90"}) {
    if (!is_main && architecture != std::string("sm_90")) continue;
    result = nvrtc.compile(kernel.source, architecture);
    EXPECT_TRUE(result.compiled) << result.log << kernel.source;
    EXPECT_EQ(result.spilled_bytes, 0) << architecture << result.log << kernel.source;
  }
  const bool wide = has_wide_access(nvrtc.ptx(kernel.source, "compute_90"));
  EXPECT_TRUE(!is_main || wide == bounds.wide) << kernel.source;
  std::printf(" %9d %5s", result.registers, wide ? "wide" : "");
}

void print_row(const std::string& name, const KernelReport& kernel) {
  const simt::Traffic& loads = kernel.report.loads;
  const simt::Traffic& stores = kernel.report.stores;
  std::printf(
      "%-40s %-28.28s %13s %7.2f %7.2f %9.2f %9lld %9lld", name.c_str(), kernel.kernel.c_str(),
      simt::to_string(kernel.block).c_str(), ratio(loads.sectors, loads.sectors_needed),
      ratio(stores.sectors, stores.sectors_needed), ratio(loads.bytes, loads.distinct_bytes),
      static_cast<long long>(32 * (loads.sectors + stores.sectors) >> 10),
      static_cast<long long>((loads.distinct_bytes + stores.distinct_bytes) >> 10));
}

void expect_within(const KernelReport& kernel, const Bounds& bounds) {
  const simt::Traffic& loads = kernel.report.loads;
  const simt::Traffic& stores = kernel.report.stores;
  EXPECT_LE(ratio(loads.sectors, loads.sectors_needed), bounds.loads) << kernel.source;
  EXPECT_LE(ratio(stores.sectors, stores.sectors_needed), bounds.stores) << kernel.source;
  EXPECT_LE(ratio(loads.bytes, loads.distinct_bytes), bounds.read) << kernel.source;
}

// What was computed is eager's, within the last digits of the type, and no defect was found.
void expect_as_eager(const tests::EmulatedWindow& run, const TapeBuilder::Handles& wanted) {
  ASSERT_EQ(run.outputs.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    const at::Tensor& eager = wanted[i].tensor;
    const double tolerance = eager.scalar_type() == at::kFloat ? 1e-4 : 2e-2;
    EXPECT_TRUE(
        at::allclose(run.outputs[i].to(at::kDouble), eager.to(at::kDouble), tolerance, tolerance));
  }
  for (const KernelReport& kernel : run.kernels) {
    EXPECT_EQ(kernel.report.text(), "") << kernel.source;
  }
}

TEST(CudaTraffic, Table) {
  at::manual_seed(1);
  std::printf(
      "\nSectors touched / needed, bytes read / different, KiB moved / that have to be\n"
      "%-40s %-28s %13s %7s %7s %9s %9s %9s %9s\n",
      "", "kernel", "threads", "loads", "stores", "read", "moved", "least", "registers");
  for (const TrafficCase& each : tests::traffic_cases()) {
    SCOPED_TRACE(each.name);
    TapeBuilder window;
    const TapeBuilder::Handles results = each.record(window);

    const tests::EmulatedWindow run = tests::run_emulated(window, results, kTrafficGpu);

    expect_as_eager(run, results);
    ASSERT_FALSE(run.kernels.empty());
    EXPECT_LE(run.kernels.size(), each.bounds.launches);
    const auto moved = [](const KernelReport& kernel) {
      return kernel.report.loads.distinct_bytes + kernel.report.stores.distinct_bytes;
    };
    const auto main = std::ranges::max_element(run.kernels, {}, moved);
    for (const KernelReport& kernel : run.kernels) {
      print_row(each.name, kernel);
      check_machine_code(kernel, each.bounds, &kernel == &*main);
      std::printf("\n");
      expect_within(kernel, each.bounds);
    }
  }
}

}  // namespace
}  // namespace torch_lazy
