// Where kernels end whose lanes run along what they reduce.

#include <gtest/gtest.h>

#include <string>

#include "planned.h"

namespace torch_lazy {
namespace {

using tests::planned;

// Of rows of 26 elements: their sums, and an operator on those.
std::string text_of(int64_t rows, const std::string& last) {
  const std::string r = std::to_string(rows);
  return "graph(%a : Float(" + r + ", 26, strides=[26, 1], device=cpu)):\n" + R"(
  %dims : int[] = prim::Constant[value=[1]]()
  %keep : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %s : Float()" +
         r + R"(, strides=[1], device=cpu) = aten::sum(%a, %dims, %keep, %none)
  %r : Float()" +
         r + ", strides=[1], device=cpu) = " + last + "\n  return (%r)";
}

TEST(ScalarEpilogue, ManyPointsOfACostlyOperatorAreComputedInVectors) {
  EXPECT_EQ(to_string(planned(text_of(200, "aten::tanh(%s)"))),
            R"(kernel kernel_sum(%0, out arena+0) 200 work items
%2 = empty Float [200] strides [1]
kernel kernel_tanh(arena+0, out %2) 1 work items
2 kernels, 0 library calls, 0 copies, arena of 832 bytes
)");
}

TEST(ScalarEpilogue, FewPointsOrCheapOnesAreNotWorthAKernel) {
  EXPECT_EQ(planned(text_of(20, "aten::tanh(%s)")).steps.size(), 2u);
  EXPECT_EQ(planned(text_of(200, "aten::sqrt(%s)")).steps.size(), 2u);
}

// The exponential is of one element of the row, the logarithm of each row and read by all of them.
TEST(ScalarEpilogue, WhatTheRowReadsAgainStaysInItsKernel) {
  EXPECT_EQ(planned(R"(graph(%a : Float(200, 26, strides=[26, 1], device=cpu)):
  %dims : int[] = prim::Constant[value=[1]]()
  %keep : bool = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %one : int = prim::Constant[value=1]()
  %s : Float(200, 1, strides=[1, 1], device=cpu) = aten::sum(%a, %dims, %keep, %none)
  %l : Float(200, 1, strides=[1, 1], device=cpu) = aten::log(%s)
  %r : Float(200, 26, strides=[26, 1], device=cpu) = aten::sub(%a, %l, %one)
  return (%r))")
                .steps.size(),
            2u);
}

}  // namespace
}  // namespace torch_lazy
