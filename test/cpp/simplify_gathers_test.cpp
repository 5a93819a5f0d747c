// Gathers and the pointwise operators whose results they read.

#include "simplified_graph.h"

namespace torch_lazy {
namespace {

using tests::Names;
using tests::Simplified;

// Rows of 24 elements in memory, an element of each row to look at, and a value for each row.
const std::string kRows = R"(
  %times : int[] = prim::Constant[value=[1, 8]]()
  %dims : int[] = prim::Constant[value=[1]]()
  %keep : bool = prim::Constant[value=1]()
  %long : Float(2, 24, strides=[24, 1], device=cpu) = aten::repeat(%a, %times)
  %index : Long(2, 1, strides=[1, 1], device=cpu) = aten::argmax(%b, %one, %keep)
  %most : Float(2, 1, strides=[1, 1], device=cpu) = aten::amax(%a, %dims, %keep)
  %shifted : Float(2, 24, strides=[24, 1], device=cpu) = aten::sub(%long, %most, %one)
)";

TEST(Simplify, GathersWhatPointwiseOperatorsRead) {
  const Simplified graph(kRows + R"(
  %e : Float(2, 24, strides=[24, 1], device=cpu) = aten::exp(%shifted)
  %r : Float(2, 1, strides=[1, 1], device=cpu) = aten::gather(%e, %one, %index, %false)
  return (%r))");

  EXPECT_EQ(graph.operators(), (Names{"repeat", "argmax", "amax", "gather", "sub", "exp"}));
  graph.expect_same_results();
}

TEST(Simplify, GathersBesideOthersThatReadAllOfIt) {
  const Simplified graph(kRows + R"(
  %r : Float(2, 1, strides=[1, 1], device=cpu) = aten::gather(%shifted, %one, %index, %false)
  %all : Float(2, 1, strides=[1, 1], device=cpu) = aten::sum(%shifted, %dims, %keep, %none)
  return (%r, %all))");

  EXPECT_EQ(graph.operators(), (Names{"repeat", "argmax", "amax", "sub", "gather", "sub", "sum"}));
  graph.expect_same_results();
}

TEST(Simplify, SelectsRowsOfWhatPointwiseOperatorsRead) {
  const Simplified graph(kRows + R"(
  %column : int[] = prim::Constant[value=[2]]()
  %column_strides : int[] = prim::Constant[value=[1]]()
  %zero : int = prim::Constant[value=0]()
  %columns : Long(2, strides=[1], device=cpu) = aten::as_strided(%index, %column, %column_strides, %zero)
  %r : Float(2, 2, strides=[2, 1], device=cpu) = aten::index_select(%shifted, %one, %columns)
  return (%r))");

  EXPECT_EQ(graph.operators(),
            (Names{"repeat", "argmax", "amax", "as_strided", "index_select", "sub"}));
  graph.expect_same_results();
}

TEST(Simplify, AGatherStaysWhereAnOperandWouldHaveToBeStored) {
  const Simplified graph(kRows + R"(
  %parts : Tensor[] = prim::ListConstruct(%long, %shifted)
  %joined : Float(4, 24, strides=[24, 1], device=cpu) = aten::cat(%parts, %one)
  %e : Float(4, 24, strides=[24, 1], device=cpu) = aten::exp(%joined)
  %r : Float(4, 2, strides=[2, 1], device=cpu) = aten::index_select(%e, %one, %index)
  return (%r))");

  EXPECT_EQ(graph.operators().back(), "index_select");
}

TEST(Simplify, AGatherOfManyElementsStays) {
  const Simplified graph(R"(
  %keep : bool = prim::Constant[value=1]()
  %index : Long(2, 1, strides=[1, 1], device=cpu) = aten::argmax(%b, %one, %keep)
  %e : M = aten::exp(%a)
  %r : Float(2, 1, strides=[1, 1], device=cpu) = aten::gather(%e, %one, %index, %false)
  return (%r))");

  EXPECT_EQ(graph.operators(), (Names{"argmax", "exp", "gather"}));
}

}  // namespace
}  // namespace torch_lazy
