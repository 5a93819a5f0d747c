// Fusion groups as text and the loops that they become.

#include "codegen/lower.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "named_graph.h"
#include "passes/choose_joins.h"
#include "passes/fuse.h"

namespace torch_lazy::codegen {
namespace {

using Layouts = std::map<std::string, Layout>;  // by the name of a value

std::string joined(const std::vector<int64_t>& numbers) {
  std::string text;
  for (const int64_t number : numbers) text += " " + std::to_string(number);
  return text;
}

// Every kernel's loop IR, then what its size slots hold and how many work items it has; or before
// which node the group has to be split. `placed`: values that lie elsewhere than their type says.
std::string lowered(const CoreGraph& graph, const FusionGroup& group, const Layouts& placed = {}) {
  std::vector<Layout> layouts;
  for (const CoreValue& value : graph.values) {
    const auto elsewhere = value.value ? placed.find(value.value->debugName()) : placed.end();
    layouts.push_back(elsewhere != placed.end() ? elsewhere->second
                                                : Layout{value.sizes, value.strides, 0});
  }
  const std::vector<int64_t> offsets(graph.inputs.size());
  std::optional<LowerFailure> failure;
  const std::vector<LoweredKernel> kernels =
      lower({graph, layouts, offsets, /*lanes=*/16, /*threads=*/2}, group, failure);
  if (failure)
    return "unsupported: " + graph.nodes[size_t(failure->node)].node->output()->debugName();
  std::string text = "\n";
  for (const LoweredKernel& kernel : kernels) {
    verify(kernel.kernel);
    text += to_string(kernel.kernel) + "  # S =" + joined(kernel.sizes) + ", " +
            std::to_string(kernel.work_items) + " work items\n";
  }
  return text;
}

// Of the one group that the graph is fused to.
std::string lowered(const std::string& text, const Layouts& placed = {}) {
  const CoreGraph graph = testing::named_core_graph(text);
  const std::vector<FusedItem> items = fuse(graph);
  const auto is_group = [](const FusedItem& item) {
    return std::holds_alternative<FusionGroup>(item);
  };
  const auto group = std::find_if(items.begin(), items.end(), is_group);
  EXPECT_EQ(std::count_if(items.begin(), items.end(), is_group), 1) << to_string(graph, items);
  return lowered(graph, std::get<FusionGroup>(*group), placed);
}

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
  for p1 < S0
  %0: float = load in0[p0 * S0 + p1]
  %1: float = exp %0
  %2: float = load in0[p0 + p1 * 4]
  %3: float = exp %2
  %4: float = mul %1, %3
  store out1[p0 * S0 + p1] = %4
  # S = 4, 4 work items
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
kernel kernel_sum_div lanes=reduction
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
kernel kernel_sum lanes=parallel block=S0
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
kernel kernel_sum_exp_combine lanes=reduction
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

TEST(Lower, AGatherReadsTheRowsThatItsIndicesName) {
  EXPECT_EQ(lowered(R"(graph(%a : Float(5, 8, strides=[8, 1], device=cpu),
      %i : Long(4, strides=[1], device=cpu)):
  %dim : int = prim::Constant[value=0]()
  %x : Float(4, 8, strides=[8, 1], device=cpu) = aten::index_select(%a, %dim, %i)
  return (%x))"),
            R"(
kernel kernel_indexselect lanes=parallel block=S0
  buffer in0: int64
  buffer in1: float
  buffer out2: float written
  for p0 < S1
  for p1 < S0
  %0: int64 = load in0[p0]
  %1: float = load in1[p1 + %0 * S0]
  store out2[p0 * S0 + p1] = %1
  # S = 8 4, 4 work items
)");
}

TEST(Lower, APartOfACatIsStoredIntoTheCat) {
  EXPECT_EQ(lowered(R"(graph(%a : Float(2, 3, strides=[3, 1], device=cpu),
      %b : Float(2, 3, strides=[3, 1], device=cpu)):
  %dim : int = prim::Constant[value=1]()
  %x : Float(2, 3, strides=[3, 1], device=cpu) = aten::exp(%a)
  %parts : Tensor[] = prim::ListConstruct(%b, %x)
  %c : Float(2, 6, strides=[6, 1], device=cpu) = aten::cat(%parts, %dim)
  return (%c))",
                    {{"x", {{2, 3}, {6, 1}, 3}}}),
            R"(
kernel kernel_exp lanes=parallel block=S0
  buffer in0: float
  buffer out1: float written
  for p0 < S1
  for p1 < S0
  %0: float = load in0[p0 * S0 + p1]
  %1: float = exp %0
  store out1[S0 + p0 * S2 + p1] = %1
  # S = 3 2 6, 2 work items
)");
}

TEST(Lower, PiecesOfAJoinAreLoadedWhereTheyLie) {
  CoreGraph graph = testing::named_core_graph(
      R"(graph(%a : Float(4, 32, strides=[32, 1], device=cpu)):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %last : int = prim::Constant[value=29]()
  %sizes : int[] = prim::Constant[value=[4, 29]]()
  %others : int[] = prim::Constant[value=[4, 3]]()
  %strides : int[] = prim::Constant[value=[32, 1]]()
  %left : Float(4, 29, strides=[32, 1], device=cpu) = aten::as_strided(%a, %sizes, %strides, %zero)
  %right : Float(4, 3, strides=[32, 1], device=cpu) = aten::as_strided(%a, %others, %strides, %last)
  %pieces : Tensor[] = prim::ListConstruct(%right, %left)
  %rolled : Float(4, 32, strides=[32, 1], device=cpu) = aten::cat(%pieces, %one)
  %r : Float(4, 32, strides=[32, 1], device=cpu) = aten::mul(%a, %rolled)
  return (%r))");
  choose_joins(graph);
  const std::vector<FusedItem> items = fuse(graph);

  EXPECT_EQ(lowered(graph, std::get<FusionGroup>(items.at(0))), R"(
kernel kernel_cat_mul lanes=parallel block=S0
  buffer in0: float
  buffer out1: float written
  for p0 < S1
  for p1 < S0
  %0: float = load in0[p0 * S0 + p1]
  %1: int64 = index p1
  %2: int64 = integer S4
  %3: bool = less %1, %2
  %4: float = load in0[S2 + p0 * S0 + p1] if %3
  %5: int64 = index p1
  %6: int64 = integer S4
  %7: bool = greater_equal %5, %6
  %8: float = load in0[S3 + p0 * S0 + p1] if %7
  %9: float = select %7, %8, %4
  %10: float = mul %0, %9
  store out1[p0 * S0 + p1] = %10
  # S = 32 4 29 -3 3, 4 work items
)");
}

TEST(Lower, AFlippedRowIsReadFromItsEnd) {
  CoreGraph graph = testing::named_core_graph(
      R"(graph(%a : Float(4, 128, strides=[128, 1], device=cpu)):
  %dims : int[] = prim::Constant[value=[1]]()
  %f : Float(4, 128, strides=[128, 1], device=cpu) = aten::flip(%a, %dims)
  %r : Float(4, 128, strides=[128, 1], device=cpu) = aten::mul(%a, %f)
  return (%r))");
  choose_joins(graph);
  const std::vector<FusedItem> items = fuse(graph);

  EXPECT_EQ(lowered(graph, std::get<FusionGroup>(items.at(0))), R"(
kernel kernel_flip_mul lanes=parallel block=S0
  buffer in0: float
  buffer out1: float written
  for p0 < S1
  for p1 < S0
  %0: float = load in0[p0 * S0 + p1]
  %1: float = load in0[S2 + p0 * S0 + p1 * -1]
  %2: float = mul %0, %1
  store out1[p0 * S0 + p1] = %2
  # S = 128 4 127, 4 work items
)");
}

TEST(Lower, ARangeThatIsGatheredIsComputed) {
  const CoreGraph graph = testing::named_core_graph(
      R"(graph(%classes : Long(4, strides=[1], device=cpu)):
  %none : NoneType = prim::Constant()
  %no : bool = prim::Constant[value=0]()
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %five : int = prim::Constant[value=5]()
  %dtype : int = prim::Constant[value=4]()
  %sizes : int[] = prim::Constant[value=[5, 1]]()
  %strides : int[] = prim::Constant[value=[1, 1]]()
  %all : Long(5, strides=[1], device=cpu) = aten::arange[overload="start_step"](%zero, %five, %one, %dtype, %none, %none, %none)
  %rows : Long(5, 1, strides=[1, 1], device=cpu) = aten::as_strided(%all, %sizes, %strides, %zero)
  %checked : Long(4, 1, strides=[1, 1], device=cpu) = aten::embedding(%rows, %classes, %zero, %no, %no)
  %r : Bool(4, 5, strides=[5, 1], device=cpu) = aten::eq(%checked, %all)
  return (%r))");
  const std::vector<FusedItem> items = fuse(graph);

  EXPECT_EQ(lowered(graph, std::get<FusionGroup>(items.front())), R"(
kernel kernel_embedding lanes=parallel block=S0
  buffer in0: int64
  buffer out1: int64 written
  for p0 < S0
  %0: int64 = load in0[p0]
  %1: int64 = integer 1
  %2: int64 = mul %0, %1
  %3: int64 = integer 0
  %4: int64 = add %2, %3
  %5: int64 = integer 1
  %6: int64 = mul %4, %5
  %7: int64 = integer 0
  %8: int64 = add %6, %7
  store out1[p0] = %8
  # S = 4, 1 work items
)");
}

// Element (i, j) is divided by the sum of row j, while the loops are at the sum of row i.
TEST(Lower, ASumReadAtAnotherPointThanItsOwnIsUnsupported) {
  const CoreGraph graph = testing::named_core_graph(
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
  EXPECT_EQ(lowered(graph, group), "unsupported: s");
}

}  // namespace
}  // namespace torch_lazy::codegen
