// Fusion groups that read or store pieces of values, and the loops that they become: gathers, cats,
// joins, flips.

#include <gtest/gtest.h>

#include "lowered_text.h"
#include "passes/choose_joins.h"

namespace torch_lazy::codegen {
namespace {

using tests::lowered;

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
  CoreGraph graph = tests::named_core_graph(
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
  CoreGraph graph = tests::named_core_graph(
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
  const CoreGraph graph = tests::named_core_graph(
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
  store out1[p0] = %4
  # S = 4, 1 work items
)");
}

}  // namespace
}  // namespace torch_lazy::codegen
