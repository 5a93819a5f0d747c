// Fusion groups as text and the loops that they become.

#include "codegen/lower.h"

#include <gtest/gtest.h>

#include "lowered_text.h"

namespace torch_lazy::codegen {
namespace {

using tests::Layouts;
using tests::lowered;

TEST(Lower, NeighbouringAxesThatAllAccessesRunThroughAreOne) {
  EXPECT_EQ(lowered(R"(graph(%a : Float(4, 8, strides=[8, 1], device=cpu)):
  %x : Float(4, 8, strides=[8, 1], device=cpu) = aten::exp(%a)
  return (%x))"),
            R"(
kernel kernel_exp lanes=parallel block=S0
  buffer in0: float
  buffer out1: float written
  for p0 < S0
  %0: float = load in0[p0]
  %1: float = exp %0
  store out1[p0] = %1
  # S = 32, 1 work items
)");
}

TEST(Lower, ABroadcastOperandDoesNotStepAlongItsMissingDimension) {
  EXPECT_EQ(lowered(R"(graph(%a : Float(4, 8, strides=[8, 1], device=cpu),
      %b : Float(8, strides=[1], device=cpu)):
  %x : Float(4, 8, strides=[8, 1], device=cpu) = aten::mul(%a, %b)
  return (%x))"),
            R"(
kernel kernel_mul lanes=parallel block=S0
  buffer in0: float
  buffer in1: float
  buffer out2: float written
  for p0 < S1
  for p1 < S0
  %0: float = load in0[p0 * S0 + p1]
  %1: float = load in1[p1]
  %2: float = mul %0, %1
  store out2[p0 * S0 + p1] = %2
  # S = 8 4, 4 work items
)");
}

TEST(Lower, ABoolDividedByANumberIsAChoiceOfTwoNumbers) {
  EXPECT_EQ(lowered(R"(graph(%a : Float(4, strides=[1], device=cpu)):
  %u : NoneType = prim::Constant()
  %no : bool = prim::Constant[value=0]()
  %float : int = prim::Constant[value=6]()
  %p : Float(requires_grad=0, device=cpu) = prim::Constant[value={0.8}]()
  %less : Bool(4, strides=[1], device=cpu) = aten::lt(%a, %p)
  %m : Float(4, strides=[1], device=cpu) = aten::_to_copy(%less, %float, %u, %u, %u, %no, %u)
  %x : Float(4, strides=[1], device=cpu) = aten::div(%m, %p)
  return (%x))"),
            R"(
kernel kernel_lt_tocopy_div lanes=parallel block=S0
  buffer in0: float
  buffer out1: float written
  for p0 < S0
  %0: float = load in0[p0]
  %1: float = number D0
  %2: bool = less %0, %1
  %3: float = number D1
  %4: float = number D2
  %5: float = select %2, %3, %4
  store out1[p0] = %5
  # S = 4, 1 work items
)");
}

TEST(Lower, EqualSizesShareASlot) {
  EXPECT_EQ(lowered(R"(graph(%a : Float(40, 40, strides=[40, 1], device=cpu),
      %b : Float(40, strides=[1], device=cpu)):
  %x : Float(40, 40, strides=[40, 1], device=cpu) = aten::mul(%a, %b)
  return (%x))"),
            R"(
kernel kernel_mul lanes=parallel block=S0
  buffer in0: float
  buffer in1: float
  buffer out2: float written
  for p0 < S0
  for p1 < S0
  %0: float = load in0[p0 * S0 + p1]
  %1: float = load in1[p1]
  %2: float = mul %0, %1
  store out2[p0 * S0 + p1] = %2
  # S = 40, 40 work items
)");
}

TEST(Lower, ATransposedOperandIsReadThroughItsStrides) {
  EXPECT_EQ(lowered(R"(graph(%a : Float(4, 8, strides=[8, 1], device=cpu),
      %b : Float(8, 4, strides=[4, 1], device=cpu)):
  %zero : int = prim::Constant[value=0]()
  %sizes : int[] = prim::Constant[value=[4, 8]]()
  %strides : int[] = prim::Constant[value=[1, 4]]()
  %t : Float(4, 8, strides=[1, 4], device=cpu) = aten::as_strided(%b, %sizes, %strides, %zero)
  %x : Float(4, 8, strides=[8, 1], device=cpu) = aten::mul(%a, %t)
  return (%x))"),
            R"(
kernel kernel_mul lanes=parallel block=S0
  buffer in0: float
  buffer in1: float
  buffer out2: float written
  for p0 < S1
  for p1 < S0
  %0: float = load in0[p0 * S0 + p1]
  %1: float = load in1[p0 + p1 * 4]
  %2: float = mul %0, %1
  store out2[p0 * S0 + p1] = %2
  # S = 8 4, 4 work items
)");
}

TEST(Lower, AxesAreInTheOrderOfTheStridesOfMostMemory) {
  EXPECT_EQ(lowered(R"(graph(%a : Float(40, 8, strides=[1, 40], device=cpu),
      %b : Float(8, strides=[1], device=cpu)):
  %x : Float(40, 8, strides=[1, 40], device=cpu) = aten::mul(%a, %b)
  return (%x))"),
            R"(
kernel kernel_mul lanes=parallel block=S0
  buffer in0: float
  buffer in1: float
  buffer out2: float written
  for p0 < S1
  for p1 < S0
  %0: float = load in0[p0 * S0 + p1]
  %1: float = load in1[p0]
  %2: float = mul %0, %1
  store out2[p0 * S0 + p1] = %2
  # S = 40 8, 8 work items
)");
}

TEST(Lower, AViewOfAMemberIsTheMemberAtAnotherIndex) {
  EXPECT_EQ(lowered(R"(graph(%a : Float(4, 4, strides=[4, 1], device=cpu)):
  %zero : int = prim::Constant[value=0]()
  %sizes : int[] = prim::Constant[value=[4, 4]]()
  %strides : int[] = prim::Constant[value=[1, 4]]()
  %e : Float(4, 4, strides=[4, 1], device=cpu) = aten::exp(%a)
  %t : Float(4, 4, strides=[1, 4], device=cpu) = aten::as_strided(%e, %sizes, %strides, %zero)
  %x : Float(4, 4, strides=[4, 1], device=cpu) = aten::mul(%e, %t)
  return (%x))"),
            R"(
kernel kernel_exp_mul lanes=parallel block=S0
  buffer in0: float
  buffer out1: float written
  for p0 < S0
  reduce r0 < 4
  %0: float = load in0[p0 * 4 + r0]
  %1: float = exp %0
  %2: float = load in0[p0 + r0 * 4]
  %3: float = exp %2
  %4: float = mul %1, %3
  store out1[p0 * 4 + r0] = %4
  # S = 4, 1 work items
)");
}

TEST(Lower, AReductionOfRowsHasItsLanesAlongTheRows) {
  EXPECT_EQ(lowered(R"(graph(%a : Float(4, 8, strides=[8, 1], device=cpu)):
  %dims : int[] = prim::Constant[value=[1]]()
  %keep : bool = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %s : Float(4, 1, strides=[1, 1], device=cpu) = aten::sum(%a, %dims, %keep, %none)
  %x : Float(4, 8, strides=[8, 1], device=cpu) = aten::div(%a, %s)
  return (%x))"),
            R"(
kernel kernel_sum_div lanes=reduction short_sums
  buffer in0: float
  buffer out1: float written
  for p0 < S0
  reduce r0 < S1
  %0: float = load in0[p0 * S1 + r0]
  %1: float = reduce_sum %0
  %2: float = div %0, %1
  store out1[p0 * S1 + r0] = %2
  # S = 4 8, 4 work items
)");
}

TEST(Lower, AReductionOfColumnsHasItsLanesAcrossThem) {
  EXPECT_EQ(lowered(R"(graph(%a : Float(4, 8, strides=[8, 1], device=cpu)):
  %dims : int[] = prim::Constant[value=[0]]()
  %keep : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %x : Float(8, strides=[1], device=cpu) = aten::sum(%a, %dims, %keep, %none)
  return (%x))"),
            R"(
kernel kernel_sum lanes=parallel block=S0 short_sums
  buffer in0: float
  buffer out1: float written
  for p0 < S0
  reduce r0 < S1
  %0: float = load in0[p0 + r0 * S0]
  %1: float = reduce_sum %0
  store out1[p0] = %1
  # S = 8 4, 1 work items
)");
}

TEST(Lower, AShortAxisThatIsNotMergedIsSteppedThroughByTheLanesOfALongOne) {
  EXPECT_EQ(lowered(R"(graph(%a : Float(40, 3, strides=[3, 1], device=cpu),
      %b : Float(3, strides=[1], device=cpu)):
  %x : Float(40, 3, strides=[3, 1], device=cpu) = aten::mul(%a, %b)
  return (%x))"),
            R"(
kernel kernel_mul lanes=parallel block=S0
  buffer in0: float
  buffer in1: float
  buffer out2: float written
  for p0 < S0
  reduce r0 < 3
  %0: float = load in0[p0 * 3 + r0]
  %1: float = load in1[r0]
  %2: float = mul %0, %1
  store out2[p0 * 3 + r0] = %2
  # S = 40, 1 work items
)");
}

TEST(Lower, AReductionOfShortRowsHasItsLanesAcrossThem) {
  EXPECT_EQ(lowered(R"(graph(%a : Float(40, 3, strides=[3, 1], device=cpu)):
  %dims : int[] = prim::Constant[value=[1]]()
  %keep : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %x : Float(40, strides=[1], device=cpu) = aten::sum(%a, %dims, %keep, %none)
  return (%x))"),
            R"(
kernel kernel_sum lanes=parallel block=S0
  buffer in0: float
  buffer out1: float written
  for p0 < S0
  reduce r0 < 3
  %0: float = load in0[p0 * 3 + r0]
  %1: float = reduce_sum %0
  store out1[p0] = %1
  # S = 40, 1 work items
)");
}

TEST(Lower, AReductionOfLongColumnsAndShortRowsHasItsLanesAlongTheColumns) {
  EXPECT_EQ(lowered(R"(graph(%a : Float(400, 3, strides=[3, 1], device=cpu),
      %b : Float(3, strides=[1], device=cpu)):
  %dims : int[] = prim::Constant[value=[0, 1]]()
  %keep : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %p : Float(400, 3, strides=[3, 1], device=cpu) = aten::mul(%a, %b)
  %x : Float(device=cpu) = aten::sum(%p, %dims, %keep, %none)
  return (%x))"),
            R"(
kernel kernel_mul_sum lanes=reduction
  buffer in0: float
  buffer in1: float
  buffer out2: float written
  reduce r0 < S0
  reduce r1 < S1
  %0: float = load in0[r0 + r1 * 3]
  %1: float = load in1[r0]
  %2: float = mul %0, %1
  %3: float = reduce_sum %2
  store out2[0] = %3
  # S = 3 400, 1 work items
)");
}

TEST(Lower, ALongReductionToAPointIsCutIntoChunksAndCombined) {
  EXPECT_EQ(lowered(R"(graph(%a : Float(100000, strides=[1], device=cpu)):
  %dims : int[] = prim::Constant[value=[0]]()
  %keep : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %s : Float(device=cpu) = aten::sum(%a, %dims, %keep, %none)
  %x : Float(device=cpu) = aten::exp(%s)
  return (%x))"),
            R"(
kernel kernel_sum_exp lanes=reduction reduction_total=S2
  buffer in0: float
  buffer out1: float written
  for p0 < S0
  reduce r0 < S1
  %0: float = load in0[r0]
  %1: float = reduce_sum %0
  store out1[p0] = %1
  # S = 7 16384 100000, 7 work items
kernel kernel_sum_exp_combine lanes=reduction short_sums
  buffer in0: float
  buffer out1: float written
  reduce r0 < S0
  %0: float = load in0[r0]
  %1: float = reduce_sum %0
  %2: float = exp %1
  store out1[0] = %2
  # S = 7, 1 work items
)");
}

// The lanes' elements of the second operand lie eight apart, the steps' between them.
TEST(Lower, StepsThatShareATileAreWrittenOut) {
  EXPECT_EQ(lowered(R"(graph(%a : Float(40, 8, 1, strides=[8, 1, 1], device=cpu),
      %b : Float(1, 8, 32, strides=[256, 1, 8], device=cpu)):
  %dims : int[] = prim::Constant[value=[1]]()
  %keep : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %m : Float(40, 8, 32, strides=[256, 32, 1], device=cpu) = aten::mul(%a, %b)
  %x : Float(40, 32, strides=[32, 1], device=cpu) = aten::sum(%m, %dims, %keep, %none)
  return (%x))"),
            R"(
kernel kernel_mul_sum lanes=parallel block=S0
  buffer in0: float
  buffer in1: float
  buffer out2: float written
  for p0 < S1
  for p1 < S0
  reduce r0 < 8
  %0: float = load in0[p0 * S2 + r0]
  %1: float = load in1[p1 * 8 + r0]
  %2: float = mul %0, %1
  %3: float = reduce_sum %2
  store out2[p0 * S0 + p1] = %3
  # S = 32 40 8, 40 work items
)");
}

// Element (i, j) is divided by the sum of row j, while the loops are at the sum of row i.
TEST(Lower, ASumReadAtAnotherPointThanItsOwnIsUnsupported) {
  const CoreGraph graph = tests::named_core_graph(
      R"(graph(%a : Float(4, 4, strides=[4, 1], device=cpu)):
  %zero : int = prim::Constant[value=0]()
  %dims : int[] = prim::Constant[value=[1]]()
  %sizes : int[] = prim::Constant[value=[1, 4]]()
  %strides : int[] = prim::Constant[value=[4, 1]]()
  %keep : bool = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %s : Float(4, 1, strides=[1, 1], device=cpu) = aten::sum(%a, %dims, %keep, %none)
  %t : Float(1, 4, strides=[4, 1], device=cpu) = aten::as_strided(%s, %sizes, %strides, %zero)
  %x : Float(4, 4, strides=[4, 1], device=cpu) = aten::div(%a, %t)
  return (%x))");
  FusionGroup group;
  for (size_t id = 0; id < graph.nodes.size(); ++id)
    if (graph.nodes[id].kind == CoreKind::kReduction ||
        graph.nodes[id].kind == CoreKind::kPointwise)
      group.nodes.push_back(NodeId(id));
  group.domain = {4, 4};
  group.reduced = {false, true};
  choose_stored(graph, group);
  EXPECT_EQ(lowered(graph, group), "unsupported: x");
}

}  // namespace
}  // namespace torch_lazy::codegen
