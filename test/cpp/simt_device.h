// An emulated device with some memory, for kernels that tests write down.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "simt/launch.h"

namespace torch_lazy::simt {

// A device with one input x of n floats (0, 1, ...) and one output y, which holds nothing yet.
struct Device {
  DeviceMemory memory;
  int64_t n;
  std::vector<float> values;
  float* x;
  float* y;

  explicit Device(int64_t n, size_t alignment = 256) : n(n), values(n) {
    for (int64_t i = 0; i < n; ++i) values[i] = static_cast<float>(i);
    x = static_cast<float*>(memory.upload(values.data(), n * sizeof(float), alignment, "x"));
    y = static_cast<float*>(memory.allocate(n * sizeof(float), alignment, "y"));
  }

  // Runs `kernel(const float* x, float* y, int n)` of this body.
  Report run(const std::string& body, Dim3 grid, Dim3 block) {
    const auto program = Program::compile(
        "extern \"C\" __global__ void kernel(const float* x, float* y, long long n) {\n"
        "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n" +
        body + "\n}\n");
    void* parameters[] = {&x, &y, &n};
    return simt::run(memory, {*program, "kernel", grid, block, parameters});
  }
};

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

#define EXPECT_CONTAINS(text, part) EXPECT_TRUE(contains(text, part)) << (text)

}  // namespace torch_lazy::simt
