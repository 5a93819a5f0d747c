// Graphs of core operators and the steps that they become.

#include <gtest/gtest.h>

#include "graph_evaluator.h"
#include "plan/library_plan.h"
#include "plan/make_plan.h"

namespace torch_lazy {
namespace {

// Each input is a storage of its own.
std::string plan_text(const std::string& text) {
  const CoreGraph graph = read_core_graph(tests::parse_graph(text));
  std::vector<GraphInput> inputs;
  for (size_t i = 0; i < graph.inputs.size(); ++i) inputs.push_back({uint32_t(i), 4096, 0, false});
  return to_string(make_plan(graph, inputs, {16, 1}));
}

// Of equal sizes, so that the second product reads the first one's sums as if they were its own.
TEST(Plan, WhatReadsSumsAtAnotherPointThanTheirOwnIsAKernelOfItsOwn) {
  EXPECT_EQ(plan_text(R"(graph(%a : Float(4, 4, strides=[4, 1], device=cpu),
      %b : Float(4, 4, strides=[4, 1], device=cpu)):
  %zero : int = prim::Constant[value=0]()
  %rows : int[] = prim::Constant[value=[4, 4, 1]]()
  %row_strides : int[] = prim::Constant[value=[4, 1, 1]]()
  %dims : int[] = prim::Constant[value=[1]]()
  %keep : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %ar : Float(4, 4, 1, strides=[4, 1, 1], device=cpu) = aten::as_strided(%a, %rows, %row_strides, %zero)
  %m : Float(4, 4, 4, strides=[16, 4, 1], device=cpu) = aten::mul(%ar, %b)
  %s : Float(4, 4, strides=[4, 1], device=cpu) = aten::sum(%m, %dims, %keep, %none)
  %e : Float(4, 4, strides=[4, 1], device=cpu) = aten::neg(%s)
  %er : Float(4, 4, 1, strides=[4, 1, 1], device=cpu) = aten::as_strided(%e, %rows, %row_strides, %zero)
  %n : Float(4, 4, 4, strides=[16, 4, 1], device=cpu) = aten::mul(%er, %b)
  %t : Float(4, 4, strides=[4, 1], device=cpu) = aten::sum(%n, %dims, %keep, %none)
  return (%t))"),
            R"(kernel kernel_mul_sum_neg(%0, %1, out arena+0) 1 work items
%8 = empty Float [4, 4] strides [4, 1]
kernel kernel_mul_sum(arena+0, %1, out %8) 1 work items
2 kernels, 0 library calls, 0 copies, arena of 64 bytes
)");
}

TEST(Plan, WhatHasNoElementsIsNotComputed) {
  EXPECT_EQ(plan_text(R"(graph(%a : Float(0, 4, strides=[4, 1], device=cpu)):
  %dims : int[] = prim::Constant[value=[0]]()
  %keep : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %x : Float(0, 4, strides=[4, 1], device=cpu) = aten::exp(%a)
  %s : Float(4, strides=[1], device=cpu) = aten::sum(%x, %dims, %keep, %none)
  return (%s))"),
            R"(%1 = empty Float [0, 4] strides [4, 1]
%2 = call aten::sum.dim_IntList  # frees %1
0 kernels, 1 library calls, 0 copies, arena of 0 bytes
)");
}

TEST(Plan, AWriteToAnInputHappensInPlace) {
  EXPECT_EQ(plan_text(R"(graph(%a : Float(4, strides=[1], device=cpu)):
  %wait : bool = prim::Constant[value=0]()
  %x : Float(4, strides=[1], device=cpu) = aten::exp(%a)
  %w : Float(4, strides=[1], device=cpu) = aten::copy_(%a, %x, %wait)
  return ())"),
            R"(kernel kernel_exp(%0, out %0) 1 work items
1 kernels, 0 library calls, 0 copies, arena of 0 bytes
)");
}

TEST(Plan, AWriteIsACopyAtTheEndWhereTheOldContentIsReadLater) {
  EXPECT_EQ(plan_text(R"(graph(%a : Float(2, 2, strides=[2, 1], device=cpu)):
  %wait : bool = prim::Constant[value=0]()
  %x : Float(2, 2, strides=[2, 1], device=cpu) = aten::exp(%a)
  %m : Float(2, 2, strides=[2, 1], device=cpu) = aten::mm(%a, %x)
  %w : Float(2, 2, strides=[2, 1], device=cpu) = aten::copy_(%a, %x, %wait)
  return (%m))"),
            R"(%1 = empty Float [2, 2] strides [2, 1]
kernel kernel_exp(%0, out %1) 1 work items
%2 = call aten::mm
copy %1 to %0  # frees %1
1 kernels, 1 library calls, 1 copies, arena of 0 bytes
)");
}

TEST(Plan, AWriteIsACopyWhereTheKernelReadsOtherOldElements) {
  EXPECT_EQ(plan_text(R"(graph(%a : Float(2, 2, strides=[2, 1], device=cpu)):
  %wait : bool = prim::Constant[value=0]()
  %zero : int = prim::Constant[value=0]()
  %sizes : int[] = prim::Constant[value=[2, 2]]()
  %swapped : int[] = prim::Constant[value=[1, 2]]()
  %t : Float(2, 2, strides=[1, 2], device=cpu) = aten::as_strided(%a, %sizes, %swapped, %zero)
  %x : Float(2, 2, strides=[2, 1], device=cpu) = aten::mul(%a, %t)
  %w : Float(2, 2, strides=[2, 1], device=cpu) = aten::copy_(%a, %x, %wait)
  return ())"),
            R"(%2 = empty Float [2, 2] strides [2, 1]
kernel kernel_mul(%0, out %2) 1 work items
copy %2 to %0  # frees %2
1 kernels, 0 library calls, 1 copies, arena of 0 bytes
)");
}

TEST(Plan, PiecesOfACatAreWrittenInPlace) {
  EXPECT_EQ(plan_text(R"(graph(%a : Float(2, 3, strides=[3, 1], device=cpu),
      %b : Float(2, 3, strides=[3, 1], device=cpu)):
  %dim : int = prim::Constant[value=1]()
  %x : Float(2, 3, strides=[3, 1], device=cpu) = aten::exp(%a)
  %pieces : Tensor[] = prim::ListConstruct(%x, %b)
  %c : Float(2, 6, strides=[6, 1], device=cpu) = aten::cat(%pieces, %dim)
  return (%c))"),
            R"(%3 = empty Float [2, 6] strides [6, 1]
kernel kernel_exp(%0, out %3) 2 work items
%4 = view %3 [2, 3] strides [6, 1] + 3
copy %1 to %4  # frees %4
1 kernels, 0 library calls, 1 copies, arena of 0 bytes
)");
}

TEST(Plan, PiecesSeenThroughAViewAreWrittenInPlace) {
  EXPECT_EQ(plan_text(R"(graph(%a : Float(2, 3, 1, strides=[3, 1, 1], device=cpu),
      %b : Float(2, 6, strides=[6, 1], device=cpu)):
  %dim : int = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %sizes : int[] = prim::Constant[value=[2, 6]]()
  %strides : int[] = prim::Constant[value=[6, 1]]()
  %last : int = prim::Constant[value=2]()
  %x : Float(2, 3, 1, strides=[3, 1, 1], device=cpu) = aten::exp(%a)
  %y : Float(2, 3, 1, strides=[3, 1, 1], device=cpu) = aten::sin(%a)
  %pair : Tensor[] = prim::ListConstruct(%x, %y)
  %xy : Float(2, 3, 2, strides=[6, 2, 1], device=cpu) = aten::cat(%pair, %last)
  %rows : Float(2, 6, strides=[6, 1], device=cpu) = aten::as_strided(%xy, %sizes, %strides, %zero)
  %pieces : Tensor[] = prim::ListConstruct(%b, %rows)
  %c : Float(2, 12, strides=[12, 1], device=cpu) = aten::cat(%pieces, %dim)
  return (%c))"),
            R"(%6 = empty Float [2, 12] strides [12, 1]
kernel kernel_exp_sin(%0, out %6, out %6) 2 work items
%7 = view %6 [2, 6] strides [12, 1]
copy %1 to %7  # frees %7
1 kernels, 0 library calls, 1 copies, arena of 0 bytes
)");
}

// y = exp(a), with exp(b) in the middle
const std::string kPartialWrite = R"(graph(%a : Float(4, strides=[1], device=cpu),
      %b : Float(2, strides=[1], device=cpu)):
  %one : int = prim::Constant[value=1]()
  %sizes : int[] = prim::Constant[value=[2]]()
  %strides : int[] = prim::Constant[value=[1]]()
  %x : Float(4, strides=[1], device=cpu) = aten::exp(%a)
  %s : Float(2, strides=[1], device=cpu) = aten::exp(%b)
  %y : Float(4, strides=[1], device=cpu) = aten::as_strided_scatter(%x, %s, %sizes, %strides, %one))";

TEST(Plan, APartialWriteOfATemporaryHappensInPlace) {
  EXPECT_EQ(plan_text(kPartialWrite + R"(
  %z : Float(4, strides=[1], device=cpu) = aten::sin(%y)
  return (%z))"),
            R"(%2 = empty Float [4] strides [1]
kernel kernel_exp(%0, out %2) 1 work items
kernel kernel_exp(%1, out %2) 1 work items
%5 = empty Float [4] strides [1]
kernel kernel_sin(%2, out %5) 1 work items  # frees %2
3 kernels, 0 library calls, 0 copies, arena of 0 bytes
)");
}

TEST(Plan, AnInputIsWrittenIntoATemporaryInPlace) {
  EXPECT_EQ(plan_text(R"(graph(%a : Float(4, strides=[1], device=cpu),
      %b : Float(2, strides=[1], device=cpu)):
  %one : int = prim::Constant[value=1]()
  %sizes : int[] = prim::Constant[value=[2]]()
  %strides : int[] = prim::Constant[value=[1]]()
  %x : Float(4, strides=[1], device=cpu) = aten::exp(%a)
  %y : Float(4, strides=[1], device=cpu) = aten::as_strided_scatter(%x, %b, %sizes, %strides, %one)
  %z : Float(4, strides=[1], device=cpu) = aten::sin(%y)
  return (%z))"),
            R"(%2 = empty Float [4] strides [1]
kernel kernel_exp(%0, out %2) 1 work items
%3 = view %2 [4] strides [1]
%5 = view %3 [2] strides [1] + 1  # frees %3
copy %1 to %5  # frees %5
%4 = empty Float [4] strides [1]
kernel kernel_sin(%2, out %4) 1 work items  # frees %2
2 kernels, 0 library calls, 1 copies, arena of 0 bytes
)");
}

TEST(Plan, APartialWriteThatIsAnOutputHappensInPlace) {
  EXPECT_EQ(plan_text(kPartialWrite + R"(
  return (%y))"),
            R"(%2 = empty Float [4] strides [1]
kernel kernel_exp(%0, out %2) 1 work items
kernel kernel_exp(%1, out %2) 1 work items
%4 = view %2 [4] strides [1]  # frees %2
2 kernels, 0 library calls, 0 copies, arena of 0 bytes
)");
}

TEST(Plan, APartialWriteLeavesABaseThatIsReadLater) {
  EXPECT_EQ(plan_text(kPartialWrite + R"(
  return (%x, %y))"),
            R"(%2 = empty Float [4] strides [1]
kernel kernel_exp(%0, out %2) 1 work items
%3 = empty Float [2] strides [1]
kernel kernel_exp(%1, out %3) 1 work items
%4 = empty Float [4] strides [1]
copy %2 to %4
%5 = view %4 [2] strides [1] + 1
copy %3 to %5  # frees %3, %5
2 kernels, 0 library calls, 2 copies, arena of 0 bytes
)");
}

// Row 1 of the input is exp(b).
const std::string kWrittenRow = R"(graph(%y : Float(4, 2, strides=[2, 1], device=cpu),
      %b : Float(2, strides=[1], device=cpu)):
  %false : bool = prim::Constant[value=0]()
  %zero : int = prim::Constant[value=0]()
  %two : int = prim::Constant[value=2]()
  %four : int = prim::Constant[value=4]()
  %row : int[] = prim::Constant[value=[2]]()
  %rows : int[] = prim::Constant[value=[2, 2]]()
  %by : int[] = prim::Constant[value=[1]]()
  %by_rows : int[] = prim::Constant[value=[2, 1]]()
  %e : Float(2, strides=[1], device=cpu) = aten::exp(%b)
  %w : Float(4, 2, strides=[2, 1], device=cpu) = aten::as_strided_scatter(%y, %e, %row, %by, %two))";

TEST(Plan, APartOfAnInputIsWrittenWhereItIs) {
  EXPECT_EQ(plan_text(kWrittenRow + R"(
  %v : Float(2, 2, strides=[2, 1], device=cpu) = aten::as_strided(%w, %rows, %by_rows, %two)
  %s : Float(2, 2, strides=[2, 1], device=cpu) = aten::sin(%v)
  %u : Float(2, strides=[1], device=cpu) = aten::as_strided(%y, %row, %by, %four)
  %c : Float(2, strides=[1], device=cpu) = aten::cos(%u)
  %f : Float(4, 2, strides=[2, 1], device=cpu) = aten::copy_(%y, %w, %false)
  return (%s, %c))"),
            R"(kernel kernel_exp(%1, out %0) 1 work items
%5 = empty Float [2, 2] strides [2, 1]
kernel kernel_sin(%0, out %5) 1 work items
%7 = empty Float [2] strides [1]
kernel kernel_cos(%0, out %7) 1 work items
3 kernels, 0 library calls, 0 copies, arena of 0 bytes
)");
}

TEST(Plan, APartOfAnInputIsWrittenAtTheEndWhereItIsReadAsItWas) {
  EXPECT_EQ(plan_text(kWrittenRow + R"(
  %v : Float(2, 2, strides=[2, 1], device=cpu) = aten::as_strided(%w, %rows, %by_rows, %two)
  %s : Float(2, 2, strides=[2, 1], device=cpu) = aten::sin(%v)
  %u : Float(2, 2, strides=[2, 1], device=cpu) = aten::as_strided(%y, %rows, %by_rows, %zero)
  %c : Float(2, 2, strides=[2, 1], device=cpu) = aten::mul(%s, %u)
  %f : Float(4, 2, strides=[2, 1], device=cpu) = aten::copy_(%y, %w, %false)
  return (%c))"),
            R"(%2 = empty Float [2] strides [1]
kernel kernel_exp(%1, out %2) 1 work items
%3 = empty Float [4, 2] strides [2, 1]
copy %0 to %3
%9 = view %3 [2] strides [1] + 2
copy %2 to %9  # frees %2, %9
%7 = empty Float [2, 2] strides [2, 1]
kernel kernel_sin_mul(%3, %0, out %7) 1 work items
copy %3 to %0  # frees %3
2 kernels, 0 library calls, 3 copies, arena of 0 bytes
)");
}

TEST(Plan, APartOfAnInputIsWrittenBehindTheKernelThatReadsOtherElementsOfIt) {
  EXPECT_EQ(plan_text(R"(graph(%y : Float(8, strides=[1], device=cpu)):
  %false : bool = prim::Constant[value=0]()
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %size : int[] = prim::Constant[value=[3]]()
  %by : int[] = prim::Constant[value=[1]]()
  %a : Float(3, strides=[1], device=cpu) = aten::as_strided(%y, %size, %by, %zero)
  %b : Float(3, strides=[1], device=cpu) = aten::as_strided(%y, %size, %by, %one)
  %c : Float(3, strides=[1], device=cpu) = aten::mul(%a, %b)
  %w : Float(8, strides=[1], device=cpu) = aten::as_strided_scatter(%y, %c, %size, %by, %zero)
  %f : Float(8, strides=[1], device=cpu) = aten::copy_(%y, %w, %false)
  return ())"),
            R"(%3 = empty Float [3] strides [1]
kernel kernel_mul(%0, out %3) 1 work items
%4 = view %0 [8] strides [1]
%6 = view %4 [3] strides [1]  # frees %4
copy %3 to %6  # frees %3, %6
1 kernels, 0 library calls, 1 copies, arena of 0 bytes
)");
}

TEST(Plan, IndicesAreCheckedBeforeTheKernelAndInputsAreWrittenAfterAllChecks) {
  EXPECT_EQ(plan_text(R"(graph(%a : Float(4, strides=[1], device=cpu),
      %w : Float(5, 4, strides=[4, 1], device=cpu), %i : Long(4, strides=[1], device=cpu)):
  %wait : bool = prim::Constant[value=0]()
  %dim : int = prim::Constant[value=0]()
  %x : Float(4, strides=[1], device=cpu) = aten::exp(%a)
  %g : Float(4, 4, strides=[4, 1], device=cpu) = aten::index_select(%w, %dim, %i)
  %y : Float(4, 4, strides=[4, 1], device=cpu) = aten::sin(%g)
  %r : Float(4, strides=[1], device=cpu) = aten::copy_(%a, %x, %wait)
  return (%y))"),
            R"(%3 = empty Float [4] strides [1]
kernel kernel_exp(%0, out %3) 1 work items
check %2 < 5 for aten::index_select
%5 = empty Float [4, 4] strides [4, 1]
kernel kernel_indexselect_sin(%2, %1, out %5) 4 work items
copy %3 to %0  # frees %3
2 kernels, 0 library calls, 1 copies, arena of 0 bytes
)");
}

TEST(Plan, TemporariesOfKernelsLieInTheArena) {
  EXPECT_EQ(plan_text(R"(graph(%a : Float(4, 80, strides=[80, 1], device=cpu)):
  %first : int[] = prim::Constant[value=[0]]()
  %last : int[] = prim::Constant[value=[1]]()
  %keep : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %rows : Float(4, strides=[1], device=cpu) = aten::sum(%a, %last, %keep, %none)
  %all : Float(device=cpu) = aten::sum(%rows, %first, %keep, %none)
  return (%all))"),
            R"(kernel kernel_sum(%0, out arena+0) 4 work items
%2 = empty Float [] strides []
kernel kernel_sum(arena+0, out %2) 1 work items
2 kernels, 0 library calls, 0 copies, arena of 64 bytes
)");
}

TEST(Plan, ALongReductionIsCutIntoChunksThatASecondKernelCombines) {
  EXPECT_EQ(plan_text(R"(graph(%a : Float(100000, strides=[1], device=cpu)):
  %dims : int[] = prim::Constant[value=[0]]()
  %keep : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %s : Float(device=cpu) = aten::sum(%a, %dims, %keep, %none)
  return (%s))"),
            R"(%1 = empty Float [] strides []
kernel kernel_sum(%0, out arena+0) 7 work items
kernel kernel_sum_combine(arena+0, out %1) 1 work items
2 kernels, 0 library calls, 0 copies, arena of 64 bytes
)");
}

TEST(Plan, ALibraryCallReadsTensorsThatAreReleasedAfterIt) {
  EXPECT_EQ(plan_text(R"(graph(%a : Float(2, 2, strides=[2, 1], device=cpu)):
  %x : Float(2, 2, strides=[2, 1], device=cpu) = aten::exp(%a)
  %m : Float(2, 2, strides=[2, 1], device=cpu) = aten::mm(%x, %x)
  %r : Float(2, 2, strides=[2, 1], device=cpu) = aten::sin(%m)
  return (%r))"),
            R"(%1 = empty Float [2, 2] strides [2, 1]
kernel kernel_exp(%0, out %1) 1 work items
%2 = call aten::mm  # frees %1
%3 = empty Float [2, 2] strides [2, 1]
kernel kernel_sin(%2, out %3) 1 work items  # frees %2
2 kernels, 1 library calls, 0 copies, arena of 0 bytes
)");
}

// The graph's operators, called as they stand.
std::string planned_as_recorded(const std::string& text) {
  return to_string(library_plan(*tests::parse_graph(text), c10::kCPU, false));
}

TEST(LibraryPlan, CallsEveryOperatorAsRecordedAndReleasesWhatItReads) {
  EXPECT_EQ(planned_as_recorded(R"(graph(%a : Float(2, 3, strides=[3, 1], device=cpu)):
  %first : int = prim::Constant[value=0]()
  %second : int = prim::Constant[value=1]()
  %t : Float(3, 2, strides=[1, 3], device=cpu) = aten::transpose(%a, %first, %second)
  %x : Float(3, 2, strides=[2, 1], device=cpu) = aten::exp(%t)
  %w : Float(3, 2, strides=[2, 1], device=cpu) = aten::mul_(%x, %x)
  %m : Float(3, 3, strides=[3, 1], device=cpu) = aten::mm(%x, %a)
  return (%m))"),
            R"(%1 = call aten::transpose.int
%2 = call aten::exp  # frees %1
%3 = call aten::mul_.Tensor  # frees %3
%4 = call aten::mm  # frees %2
0 kernels, 4 library calls, 0 copies, arena of 0 bytes
)");
}

TEST(LibraryPlan, ElementsOfAListAreSlotsOfTheirOwn) {
  EXPECT_EQ(planned_as_recorded(R"(graph(%a : Float(4, strides=[1], device=cpu)):
  %size : int = prim::Constant[value=2]()
  %dim : int = prim::Constant[value=0]()
  %halves : Tensor[] = aten::split(%a, %size, %dim)
  %x : Float(2, strides=[1], device=cpu), %y : Float(2, strides=[1], device=cpu) = prim::ListUnpack(%halves)
  %turned : Tensor[] = prim::ListConstruct(%y, %x)
  %c : Float(4, strides=[1], device=cpu) = aten::cat(%turned, %dim)
  return (%c))"),
            R"(%1, %2 = call aten::split.Tensor
%3 = call aten::cat  # frees %2, %1
0 kernels, 2 library calls, 0 copies, arena of 0 bytes
)");
}

// Of each kernel of the graph's plan.
std::vector<int64_t> bytes_of_kernels(const std::string& text) {
  const CoreGraph graph = read_core_graph(tests::parse_graph(text));
  std::vector<GraphInput> inputs;
  for (size_t i = 0; i < graph.inputs.size(); ++i) inputs.push_back({uint32_t(i), 4096, 0, false});
  std::vector<int64_t> bytes;
  for (const PlanStep& step : make_plan(graph, inputs, {16, 1}).steps)
    if (const auto* kernel = std::get_if<KernelStep>(&step.action)) bytes.push_back(kernel->bytes);
  return bytes;
}

TEST(KernelBytes, ABroadcastOperandIsCountedOnce) {
  EXPECT_EQ(bytes_of_kernels(R"(graph(%a : Float(5, 7, strides=[7, 1], device=cpu),
      %b : Float(7, strides=[1], device=cpu)):
  %y : Float(5, 7, strides=[7, 1], device=cpu) = aten::mul(%a, %b)
  return (%y))"),
            std::vector<int64_t>{4 * (35 + 7 + 35)});
}

TEST(KernelBytes, BothKernelsOfALongReductionCountTheirPartialResults) {
  EXPECT_EQ(bytes_of_kernels(R"(graph(%a : Float(100000, strides=[1], device=cpu)):
  %dims : int[] = prim::Constant[value=[0]]()
  %keep : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %s : Float(device=cpu) = aten::sum(%a, %dims, %keep, %none)
  return (%s))"),
            (std::vector<int64_t>{4 * (100000 + 7), 4 * (7 + 1)}));
}

TEST(KernelBytes, OverlappingViewsOfOneInputCountEachElementOnce) {
  EXPECT_EQ(bytes_of_kernels(R"(graph(%a : Float(9, strides=[1], device=cpu)):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %sizes : int[] = prim::Constant[value=[8]]()
  %strides : int[] = prim::Constant[value=[1]]()
  %l : Float(8, strides=[1], device=cpu) = aten::as_strided(%a, %sizes, %strides, %zero)
  %r : Float(8, strides=[1], device=cpu) = aten::as_strided(%a, %sizes, %strides, %one)
  %y : Float(8, strides=[1], device=cpu) = aten::mul(%l, %r)
  return (%y))"),
            std::vector<int64_t>{4 * (9 + 8)});
}

TEST(KernelBytes, AGatherReadsOneElementForEachOfItsOwn) {
  EXPECT_EQ(bytes_of_kernels(R"(graph(%w : Float(1000, 4, strides=[4, 1], device=cpu),
      %i : Long(3, strides=[1], device=cpu)):
  %dim : int = prim::Constant[value=0]()
  %g : Float(3, 4, strides=[4, 1], device=cpu) = aten::index_select(%w, %dim, %i)
  %y : Float(3, 4, strides=[4, 1], device=cpu) = aten::sin(%g)
  return (%y))"),
            std::vector<int64_t>{4 * (12 + 12) + 8 * 3});
}

}  // namespace
}  // namespace torch_lazy
