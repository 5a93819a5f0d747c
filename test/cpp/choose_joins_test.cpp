// Which cats and padded values kernels compute, as the groups that they become.

#include "passes/choose_joins.h"

#include <gtest/gtest.h>

#include <string>

#include "named_graph.h"
#include "passes/fuse.h"

namespace torch_lazy {
namespace {

std::string fused_and_joined(const std::string& text) {
  CoreGraph graph = tests::named_core_graph(text);
  choose_joins(graph);
  return to_string(graph, fuse(graph));
}

// a * cos + cat(-a[:, 16:], a[:, :16]) * sin, as rotary embeddings are written.
const std::string kRotatedHalves = R"(graph(%a : Float(4, 32, strides=[32, 1], device=cpu),
      %cos : Float(4, 32, strides=[32, 1], device=cpu)):
  %one : int = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %half : int = prim::Constant[value=16]()
  %sizes : int[] = prim::Constant[value=[4, 16]]()
  %strides : int[] = prim::Constant[value=[32, 1]]()
  %left : Float(4, 16, strides=[32, 1], device=cpu) = aten::as_strided(%a, %sizes, %strides, %zero)
  %right : Float(4, 16, strides=[32, 1], device=cpu) = aten::as_strided(%a, %sizes, %strides, %half)
  %n : Float(4, 16, strides=[16, 1], device=cpu) = aten::neg(%right)
  %pieces : Tensor[] = prim::ListConstruct(%n, %left)
  %c : Float(4, 32, strides=[32, 1], device=cpu) = aten::cat(%pieces, %one)
  %p : Float(4, 32, strides=[32, 1], device=cpu) = aten::mul(%a, %cos)
  %r : Float(4, 32, strides=[32, 1], device=cpu) = aten::add(%p, %c, %one)
  return (%r))";

TEST(ChooseJoins, APieceIsComputedForTheJoinThatAKernelReads) {
  EXPECT_EQ(fused_and_joined(kRotatedHalves), "{c, p, r | store r | rematerialize n} [4, 32]\n");
}

TEST(ChooseJoins, ACatThatNoKernelReadsIsNoJoin) {
  EXPECT_EQ(fused_and_joined(R"(graph(%a : Float(4, 32, strides=[32, 1], device=cpu),
      %b : Float(4, 32, strides=[32, 1], device=cpu)):
  %one : int = prim::Constant[value=1]()
  %pieces : Tensor[] = prim::ListConstruct(%a, %b)
  %c : Float(4, 64, strides=[64, 1], device=cpu) = aten::cat(%pieces, %one)
  return (%c))"),
            "aten::cat c\n");
}

TEST(ChooseJoins, WhatAKernelMakesForOthersTooIsNoPieceOfAJoin) {
  EXPECT_EQ(fused_and_joined(R"(graph(%a : Float(4, 32, strides=[32, 1], device=cpu)):
  %one : int = prim::Constant[value=1]()
  %e : Float(4, 32, strides=[32, 1], device=cpu) = aten::exp(%a)
  %pieces : Tensor[] = prim::ListConstruct(%e, %a)
  %c : Float(4, 64, strides=[64, 1], device=cpu) = aten::cat(%pieces, %one)
  %t : Float(4, 64, strides=[64, 1], device=cpu) = aten::tanh(%c)
  return (%t, %e))"),
            "{e | store e} [4, 32]\naten::cat c\n{t | store t} [4, 64]\n");
}

TEST(ChooseJoins, ACatWithShortRowsIsNoJoin) {
  EXPECT_EQ(fused_and_joined(R"(graph(%a : Float(64, 2, strides=[2, 1], device=cpu),
      %b : Float(64, 1, strides=[1, 1], device=cpu)):
  %one : int = prim::Constant[value=1]()
  %pieces : Tensor[] = prim::ListConstruct(%a, %b)
  %c : Float(64, 3, strides=[3, 1], device=cpu) = aten::cat(%pieces, %one)
  %t : Float(64, 3, strides=[3, 1], device=cpu) = aten::tanh(%c)
  return (%t))"),
            "aten::cat c\n{t | store t} [64, 3]\n");
}

TEST(ChooseJoins, APaddedValueIsMadeByOneKernel) {
  EXPECT_EQ(fused_and_joined(R"(graph(%a : Float(94, strides=[1], device=cpu)):
  %one : int = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %zero : float = prim::Constant[value=0]()
  %size : int[] = prim::Constant[value=[96]]()
  %sizes : int[] = prim::Constant[value=[94]]()
  %strides : int[] = prim::Constant[value=[1]]()
  %f : Float(96, strides=[1], device=cpu) = aten::full(%size, %zero, %none, %none, %none, %none)
  %p : Float(96, strides=[1], device=cpu) = aten::as_strided_scatter(%f, %a, %sizes, %strides, %one)
  return (%p))"),
            "{p | store p | rematerialize f} [96]\n");
}

// A sum of two views of %a between two rows of zeros and two columns.
std::string sum_of_views(const std::string& sizes, const std::string& strides) {
  return R"(graph(%a : Float(6, 30, strides=[30, 1], device=cpu)):
  %one : int = prim::Constant[value=1]()
  %next : int = prim::Constant[value=33]()
  %none : NoneType = prim::Constant()
  %zero : float = prim::Constant[value=0]()
  %size : int[] = prim::Constant[value=[8, 32]]()
  %inner : int[] = prim::Constant[value=[6, 30]]()
  %dense : int[] = prim::Constant[value=[32, 1]]()
  %f : Float(8, 32, strides=[32, 1], device=cpu) = aten::full(%size, %zero, %none, %none, %none, %none)
  %p : Float(8, 32, strides=[32, 1], device=cpu) = aten::as_strided_scatter(%f, %a, %inner, %dense, %next)
  %sizes : int[] = prim::Constant[value=[)" +
         sizes + R"(]]()
  %strides : int[] = prim::Constant[value=[)" +
         strides + R"(]]()
  %v : Float()" +
         sizes + ", strides=[" + strides +
         R"(], device=cpu) = aten::as_strided(%p, %sizes, %strides, %one)
  %w : Float()" +
         sizes + ", strides=[" + strides +
         R"(], device=cpu) = aten::as_strided(%p, %sizes, %strides, %next)
  %r : Float()" +
         sizes + ", strides=[15, 1], device=cpu) = aten::add(%v, %w, %one)\n  return (%r)";
}

TEST(ChooseJoins, APaddedValueIsReadShiftedByTheKernelThatReadsIt) {
  EXPECT_EQ(fused_and_joined(sum_of_views("3, 15", "64, 1")),
            "{r | store r | rematerialize f p} [3, 15]\n");
}

TEST(ChooseJoins, EverySecondElementOfARowIsReadFromMemory) {
  EXPECT_EQ(fused_and_joined(sum_of_views("3, 15", "32, 2")),
            "{f | store f} [8, 32]\naten::as_strided_scatter p\n{r | store r} [3, 15]\n");
}

TEST(ChooseJoins, AValueIsReadFlippedByTheKernelThatReadsIt) {
  EXPECT_EQ(fused_and_joined(R"(graph(%a : Float(4, 128, strides=[128, 1], device=cpu)):
  %one : int = prim::Constant[value=1]()
  %dims : int[] = prim::Constant[value=[-1]]()
  %f : Float(4, 128, strides=[128, 1], device=cpu) = aten::flip(%a, %dims)
  %r : Float(4, 128, strides=[128, 1], device=cpu) = aten::sub(%a, %f, %one)
  return (%r))"),
            "{f, r | store r} [4, 128]\n");
}

TEST(ChooseJoins, WhatAKernelMakesForOthersTooIsReadFlippedFromMemory) {
  EXPECT_EQ(fused_and_joined(R"(graph(%a : Float(4, 128, strides=[128, 1], device=cpu)):
  %one : int = prim::Constant[value=1]()
  %dims : int[] = prim::Constant[value=[-1]]()
  %e : Float(4, 128, strides=[128, 1], device=cpu) = aten::exp(%a)
  %f : Float(4, 128, strides=[128, 1], device=cpu) = aten::flip(%e, %dims)
  %r : Float(4, 128, strides=[128, 1], device=cpu) = aten::sub(%e, %f, %one)
  return (%r))"),
            "{e | store e} [4, 128]\n{f, r | store r} [4, 128]\n");
}

TEST(ChooseJoins, AFlipThatNoKernelReadsIsALibraryCall) {
  EXPECT_EQ(fused_and_joined(R"(graph(%a : Float(4, 128, strides=[128, 1], device=cpu)):
  %dims : int[] = prim::Constant[value=[-1]]()
  %f : Float(4, 128, strides=[128, 1], device=cpu) = aten::flip(%a, %dims)
  return (%f))"),
            "aten::flip f\n");
}

TEST(ChooseJoins, AFlipOfShortRowsIsALibraryCall) {
  EXPECT_EQ(fused_and_joined(R"(graph(%a : Float(64, 32, strides=[32, 1], device=cpu)):
  %one : int = prim::Constant[value=1]()
  %dims : int[] = prim::Constant[value=[0]]()
  %f : Float(64, 32, strides=[32, 1], device=cpu) = aten::flip(%a, %dims)
  %r : Float(64, 32, strides=[32, 1], device=cpu) = aten::sub(%a, %f, %one)
  return (%r))"),
            "aten::flip f\n{r | store r} [64, 32]\n");
}

TEST(ChooseJoins, AJoinThatAReductionReadsHasTwoPieces) {
  const std::string text = R"(graph(%a : Float(4, 32, strides=[32, 1], device=cpu)):
  %one : int = prim::Constant[value=1]()
  %dims : int[] = prim::Constant[value=[1]]()
  %keep : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %pieces : Tensor[] = prim::ListConstruct(%a, %a, %a)
  %c : Float(4, 96, strides=[96, 1], device=cpu) = aten::cat(%pieces, %one)
  %s : Float(4, strides=[1], device=cpu) = aten::sum(%c, %dims, %keep, %none)
  return (%s))";
  EXPECT_EQ(fused_and_joined(text), "aten::cat c\n{s | store s} [4, 96~]\n");
}

TEST(ChooseJoins, PiecesAreComputedToALimitedDepth) {
  std::string text = "graph(%a0 : Float(64, strides=[1], device=cpu)):\n";
  text += "  %dim : int = prim::Constant[value=0]()\n";
  for (int i = 1; i <= 12; ++i) {
    const std::string made = "a" + std::to_string(i), of = "a" + std::to_string(i - 1);
    text += "  %" + made + " : Float(64, strides=[1], device=cpu) = aten::exp(%" + of + ")\n";
  }
  text += "  %pieces : Tensor[] = prim::ListConstruct(%a12, %a0)\n";
  text += "  %c : Float(128, strides=[1], device=cpu) = aten::cat(%pieces, %dim)\n";
  text += "  %r : Float(128, strides=[1], device=cpu) = aten::neg(%c)\n  return (%r)";

  EXPECT_NE(fused_and_joined(text).find("aten::cat c\n"), std::string::npos);
}

}  // namespace
}  // namespace torch_lazy
