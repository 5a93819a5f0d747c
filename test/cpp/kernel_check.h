// Runs a kernel of the loop IR as printed and compiled for each CPU target, and as printed for CUDA
// in the emulator, and compares what it leaves in memory with what LoopEvaluator says.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <string>
#include <vector>

#include "backend/cpu/kernel_compiler.h"
#include "codegen/loop_analysis.h"
#include "codegen/loop_ir.h"
#include "codegen/printer.h"
#include "codegen/thread_loop.h"
#include "emulated_kernel.h"
#include "guarded_memory.h"
#include "loop_arguments.h"
#include "loop_evaluator.h"

namespace torch_lazy::codegen {

struct CpuTarget {
  const char* name;
  Target target;
  KernelTarget compile_for;
};

// All that this machine can run.
inline std::vector<CpuTarget> cpu_targets() {
  std::vector<CpuTarget> targets{
      {"1 lane", {.lanes = 1}, KernelTarget::kBaseline},
  };
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    targets.push_back({"4 lanes", {.lanes = 4}, KernelTarget::kAvx2});
    targets.push_back({"8 lanes", {.lanes = 8}, KernelTarget::kAvx2});
  }
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    targets.push_back({"16 lanes", {.lanes = 16}, KernelTarget::kHost});
  }
  return targets;
}

// What the buffers hold after the evaluator has run the kernel.
inline std::vector<Elements> evaluated(const Kernel& kernel, KernelArguments arguments) {
  std::vector<void*> pointers;
  for (Elements& elements : arguments.buffers) pointers.push_back(elements.bytes.data());
  LoopEvaluator(kernel, pointers, arguments.sizes, arguments.numbers).run();
  return arguments.buffers;
}

// What they hold after the printed kernel has run in two calls. Beyond the end of the buffers that
// `at` says accesses fault.
inline std::vector<Elements> compiled_and_run(const Kernel& kernel, KernelArguments arguments,
                                              const CpuTarget& target, GuardedMemory::At at) {
  const PrintedKernel printed = print_kernel(kernel, target.target);
  const auto compiled = compile_kernel(printed.source, printed.entry, target.compile_for);
  std::deque<GuardedMemory> memory;
  std::vector<void*> pointers;
  for (Elements& elements : arguments.buffers) {
    const size_t shift = arguments.aligned ? 0 : bytes_of(elements.type);
    char* const begin = memory.emplace_back(elements.bytes.size() + shift, at).data() + shift;
    pointers.push_back(begin);
    std::copy(elements.bytes.begin(), elements.bytes.end(), begin);
  }
  const int64_t reduced = product_of(kernel.reduction, arguments);
  std::vector<char> scratch(scratch_bytes(printed.scratch_values, reduced));
  pointers.push_back(scratch.data());
  const int64_t work_items = work_item_count(kernel, arguments);
  const auto run = [&](int64_t begin, int64_t end) {
    compiled->function(pointers.data(), arguments.sizes.data(), arguments.numbers.data(), begin,
                       end);
  };
  run(0, work_items / 2);
  run(work_items / 2, work_items);
  for (size_t i = 0; i < memory.size(); ++i) {
    EXPECT_TRUE(memory[i].is_intact()) << kernel.buffers[i].name << "\n" << printed.source;
    std::vector<char>& bytes = arguments.buffers[i].bytes;
    std::copy_n(static_cast<const char*>(pointers[i]), bytes.size(), bytes.begin());
  }
  return arguments.buffers;
}

inline bool nearly_equal(Type type, Number a, Number b, double tolerance) {
  if (!is_floating(type)) return a.integer == b.integer;
  if (std::isnan(a.real) || std::isnan(b.real)) return std::isnan(a.real) && std::isnan(b.real);
  if (a.real == b.real) return true;
  if (type == Type::kFloat8E5M2) tolerance = std::max(tolerance, 0.25);
  if (type == Type::kFloat8E4M3FN) tolerance = std::max(tolerance, 0.125);
  if (type == Type::kBFloat16) tolerance = std::max(tolerance, 0.01);
  if (type == Type::kHalf) tolerance = std::max(tolerance, 0.002);
  return std::abs(a.real - b.real) <= tolerance * std::max(1.0, std::abs(b.real));
}

// Fails once, at the first element that is not as expected; `source` is what computed it.
inline void expect_nearly_equal(const Kernel& kernel, const std::vector<Elements>& actual,
                                const std::vector<Elements>& expected, double tolerance,
                                const std::string& target, const std::string& source) {
  for (size_t b = 0; b < expected.size(); ++b) {
    for (int64_t i = 0; i < expected[b].count(); ++i) {
      const Number want = expected[b].at(i);
      const Number got = actual[b].at(i);
      if (nearly_equal(expected[b].type, got, want, tolerance)) continue;
      ADD_FAILURE() << target << ": " << kernel.buffers[b].name << "[" << i << "] is " << got.real
                    << " or " << got.integer << ", not " << want.real << " or " << want.integer
                    << "\n"
                    << to_string(kernel) << source;
      return;
    }
  }
}

// Several blocks, of which some have nothing to do.
inline void expect_emulated(const Kernel& kernel, const KernelArguments& arguments,
                            const std::vector<Elements>& expected, double tolerance,
                            simt::Dim3 block) {
  if (testing::Test::HasFailure()) return;
  verify(kernel);
  const EmulatedRun run = emulated(kernel, arguments, {3}, block);
  const std::string target = "CUDA, blocks of " + simt::to_string(block);
  const std::string source = print_kernel(kernel, {.kind = Target::Kind::kCuda}).source;
  for (const simt::Report& report : run.reports) {
    EXPECT_EQ(report.text(), "") << target << "\n" << to_string(kernel) << source;
  }
  expect_nearly_equal(kernel, run.buffers, expected, tolerance, target, source);
}

// A row of threads a work item, and several; with each thread's elements one by one, and as they
// are chosen for these arguments.
inline void expect_emulated(const Kernel& kernel, const KernelArguments& arguments,
                            const std::vector<Elements>& expected, double tolerance) {
  Kernel chosen = kernel;
  const bool columns = kernel.axis == Axis::kParallel && !kernel.parallel.empty();
  if (columns && !kernel.reduction.empty()) chosen.block = Size::constant(ThreadLoop::kColumns);
  chosen.thread_loop = choose_thread_loop(chosen, arguments.sizes, kMostSharedBytes);
  const ThreadLoop& loop = chosen.thread_loop;
  const bool any_block = loop.threads == 0 && loop.rows == 1 && loop.transposed < 0;
  for (const simt::Dim3 block : {simt::Dim3{32, 4}, simt::Dim3{96, 1}}) {
    expect_emulated(kernel, arguments, expected, tolerance, block);
    if (any_block) expect_emulated(chosen, arguments, expected, tolerance, block);
  }
  if (any_block) return;
  const auto threads =
      static_cast<uint32_t>(loop.threads > 0 ? loop.threads : ThreadLoop::kColumns);
  uint32_t rows = threads > 32 ? 1 : 132 / threads;
  if (loop.rows > 1) rows = static_cast<uint32_t>(loop.rows);
  if (loop.transposed >= 0) rows = ThreadLoop::kRowsOfSquare;
  expect_emulated(chosen, arguments, expected, tolerance, {threads, rows});
}

inline void expect_as_evaluated(const Kernel& kernel, const KernelArguments& arguments,
                                double tolerance = 1e-5) {
  verify(kernel);
  const std::vector<Elements> expected = evaluated(kernel, arguments);
  using At = GuardedMemory::At;
  for (const CpuTarget& target : cpu_targets()) {
    for (const At at : {At::kBegin, At::kEnd}) {
      expect_nearly_equal(kernel, compiled_and_run(kernel, arguments, target, at), expected,
                          tolerance, target.name, print_kernel(kernel, target.target).source);
      if (testing::Test::HasFailure()) return;
    }
  }
  if (has_scans(kernel.exprs)) return;  // a CPU's alone
  Kernel of_gpu = kernel;
  of_gpu.jam = {};
  expect_emulated(of_gpu, arguments, expected, tolerance);
}

}  // namespace torch_lazy::codegen
