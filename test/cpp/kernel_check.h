// Runs a kernel of the loop IR as printed and compiled for each CPU target, and compares what it
// leaves in memory with what LoopEvaluator says.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "backend/cpu/kernel_compiler.h"
#include "codegen/loop_ir.h"
#include "codegen/printer.h"
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

// Elements of one type, in memory that is not aligned to vectors.
struct Elements {
  Type type = Type::kFloat;
  std::vector<char> bytes;

  Elements(Type type, int64_t count) : type(type), bytes(count * bytes_of(type)) {}
  int64_t count() const { return static_cast<int64_t>(bytes.size()) / bytes_of(type); }
  Number at(int64_t i) const { return read_number(type, bytes.data(), i); }
  void set(int64_t i, Number number) { write_number(type, bytes.data(), i, number); }
};

inline Elements elements_of(Type type, const std::vector<double>& numbers) {
  Elements elements(type, static_cast<int64_t>(numbers.size()));
  for (size_t i = 0; i < numbers.size(); ++i) {
    elements.set(
        static_cast<int64_t>(i),
        {.real = numbers[i], .integer = is_floating(type) ? 0 : static_cast<int64_t>(numbers[i])});
  }
  return elements;
}

// Between -2 and 2 where floating, else small integers of either sign as far as the type has them.
inline Elements random_elements(Type type, int64_t count, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> real(-2, 2);
  Elements elements(type, count);
  for (int64_t i = 0; i < count; ++i) {
    elements.set(i, {.real = real(random), .integer = static_cast<int64_t>(random() % 15) - 7});
  }
  return elements;
}

struct KernelArguments {
  std::vector<Elements> buffers;
  std::vector<int64_t> sizes;
  std::vector<double> numbers;
  bool aligned = false;  // buffers begin at a cache line, else in the middle of one
};

inline int64_t value_of(Size size, const KernelArguments& arguments) {
  return size.slot ? arguments.sizes[size.value] : size.value;
}

inline int64_t product_of(const std::vector<Size>& extents, const KernelArguments& arguments) {
  int64_t product = 1;
  for (Size extent : extents) product *= value_of(extent, arguments);
  return product;
}

inline int64_t work_item_count(const Kernel& kernel, const KernelArguments& arguments) {
  if (kernel.axis == Axis::kReduction || kernel.parallel.empty()) {
    return product_of(kernel.parallel, arguments);
  }
  std::vector<Size> others(kernel.parallel.begin(), kernel.parallel.end() - 1);
  const int64_t block = value_of(kernel.block, arguments);
  const int64_t last = value_of(kernel.parallel.back(), arguments);
  return product_of(others, arguments) * ((last + block - 1) / block);
}

// What the buffers hold after the evaluator has run the kernel.
inline std::vector<Elements> evaluated(const Kernel& kernel, KernelArguments arguments) {
  std::vector<void*> pointers;
  for (Elements& elements : arguments.buffers) pointers.push_back(elements.bytes.data());
  LoopEvaluator(kernel, pointers, arguments.sizes, arguments.numbers).run();
  return arguments.buffers;
}

// What they hold after the printed kernel has run in two calls.
inline std::vector<Elements> compiled_and_run(const Kernel& kernel, KernelArguments arguments,
                                              const CpuTarget& target) {
  const PrintedKernel printed = print_kernel(kernel, target.target);
  const auto compiled = compile_kernel(printed.source, printed.entry, target.compile_for);
  std::vector<std::vector<char>> shifted;
  std::vector<void*> pointers;
  for (Elements& elements : arguments.buffers) {
    std::vector<char>& memory = shifted.emplace_back(elements.bytes.size() + 128);
    char* line = memory.data() + 64 - reinterpret_cast<uintptr_t>(memory.data()) % 64;
    pointers.push_back(line + (arguments.aligned ? 0 : bytes_of(elements.type)));
    std::copy(elements.bytes.begin(), elements.bytes.end(), static_cast<char*>(pointers.back()));
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
  for (size_t i = 0; i < shifted.size(); ++i) {
    std::vector<char>& bytes = arguments.buffers[i].bytes;
    std::copy_n(static_cast<const char*>(pointers[i]), bytes.size(), bytes.begin());
  }
  return arguments.buffers;
}

inline bool nearly_equal(Type type, Number a, Number b, double tolerance) {
  if (!is_floating(type)) return a.integer == b.integer;
  if (std::isnan(a.real) || std::isnan(b.real)) return std::isnan(a.real) && std::isnan(b.real);
  if (a.real == b.real) return true;
  if (type == Type::kBFloat16) tolerance = std::max(tolerance, 0.01);
  if (type == Type::kHalf) tolerance = std::max(tolerance, 0.002);
  return std::abs(a.real - b.real) <= tolerance * std::max(1.0, std::abs(b.real));
}

inline void expect_as_evaluated(const Kernel& kernel, const KernelArguments& arguments,
                                double tolerance = 1e-5) {
  verify(kernel);
  const std::vector<Elements> expected = evaluated(kernel, arguments);
  for (const CpuTarget& target : cpu_targets()) {
    const std::vector<Elements> actual = compiled_and_run(kernel, arguments, target);
    for (size_t b = 0; b < expected.size(); ++b) {
      for (int64_t i = 0; i < expected[b].count(); ++i) {
        const Number want = expected[b].at(i);
        const Number got = actual[b].at(i);
        if (nearly_equal(expected[b].type, got, want, tolerance)) continue;
        ADD_FAILURE() << target.name << ": " << kernel.buffers[b].name << "[" << i << "] is "
                      << got.real << " or " << got.integer << ", not " << want.real << " or "
                      << want.integer << "\n"
                      << to_string(kernel) << print_kernel(kernel, target.target).source;
        return;
      }
    }
  }
}

}  // namespace torch_lazy::codegen
