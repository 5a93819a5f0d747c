// What the simplify pass makes of partial writes and cats.

#include "passes/graph_builder.h"
#include "simplified_graph.h"

namespace torch_lazy {
namespace {

using tests::kOneWrite;
using tests::Names;
using tests::Simplified;

TEST(Simplify, ReadsWhatAPartialWriteWrote) {
  const Simplified graph(kOneWrite + R"(
  %r : Float(2, 1, strides=[3, 1], device=cpu) = aten::as_strided(%s1, %column, %strides, %zero)
  %t : Float(2, 1, strides=[1, 1], device=cpu) = aten::tanh(%r)
  return (%t))");

  EXPECT_EQ(graph.operators(), (Names{"exp", "as_strided", "neg", "tanh"}));
  graph.expect_same_results();
}

TEST(Simplify, ReadsPartsOfWhatAPartialWriteWrote) {
  const Simplified graph(kOneWrite + R"(
  %more : int[] = prim::Constant[value=[1, 2, 1]]()
  %by : int[] = prim::Constant[value=[1, 3, 1]]()
  %r : Float(1, 2, 1, strides=[1, 3, 1], device=cpu) = aten::as_strided(%s1, %more, %by, %zero)
  %t : Float(1, 2, 1, strides=[2, 1, 1], device=cpu) = aten::tanh(%r)
  return (%t))");

  EXPECT_EQ(graph.operators(), (Names{"exp", "as_strided", "neg", "as_strided", "tanh"}));
  EXPECT_EQ(info_of(graph.after->outputs()[0]->node()->input(0)).strides[1], 1);
  graph.expect_same_results();
}

TEST(Simplify, ReadsPastAPartialWriteElsewhere) {
  const Simplified graph(kOneWrite + R"(
  %r : Float(2, 2, strides=[3, 1], device=cpu) = aten::as_strided(%s1, %columns, %strides, %one)
  %t : Float(2, 2, strides=[2, 1], device=cpu) = aten::tanh(%r)
  return (%t))");

  EXPECT_EQ(graph.operators(), (Names{"exp", "as_strided", "tanh"}));
  graph.expect_same_results();
}

TEST(Simplify, KeepsAPartialWriteThatIsReadInPart) {
  const Simplified graph(kOneWrite + R"(
  %r : Float(2, 2, strides=[3, 1], device=cpu) = aten::as_strided(%s1, %columns, %strides, %zero)
  %t : Float(2, 2, strides=[2, 1], device=cpu) = aten::tanh(%r)
  return (%t))");

  EXPECT_EQ(graph.operators(),
            (Names{"exp", "as_strided", "neg", "as_strided_scatter", "as_strided", "tanh"}));
}

// Of what lies between two writes a copy would have to be kept.
TEST(Simplify, ReadsTheLastOfSeveralPartialWritesWhereThoseBeforeAreReadInPart) {
  const Simplified graph(kOneWrite + R"(
  %v1 : Float(2, 1, strides=[3, 1], device=cpu) = aten::as_strided(%b, %column, %strides, %zero)
  %s2 : M = aten::as_strided_scatter(%s1, %v1, %column, %strides, %two)
  %r : Float(2, 2, strides=[3, 1], device=cpu) = aten::as_strided(%s2, %columns, %strides, %zero)
  %t : Float(2, 2, strides=[2, 1], device=cpu) = aten::tanh(%r)
  return (%t, %s2))");

  EXPECT_EQ(graph.after->outputs()[0]->node()->input(0)->node()->input(0),
            graph.after->outputs()[1]);
  graph.expect_same_results();
}

TEST(Simplify, PartialWritesOfAllAreACat) {
  const Simplified graph(kOneWrite + R"(
  %v1 : Float(2, 2, strides=[3, 1], device=cpu) = aten::as_strided(%s1, %columns, %strides, %one)
  %w1 : Float(2, 2, strides=[2, 1], device=cpu) = aten::tanh(%v1)
  %s2 : M = aten::as_strided_scatter(%s1, %w1, %columns, %strides, %one)
  return (%s2))");

  EXPECT_EQ(graph.operators(), (Names{"exp", "as_strided", "neg", "as_strided", "tanh", "cat"}));
  graph.expect_same_results();
}

TEST(Simplify, PartialWritesOfAFullTensorThatMeetAreNoCat) {
  const Simplified graph(kOneWrite + R"(
  %sizes : int[] = prim::Constant[value=[2, 3]]()
  %dtype : int = prim::Constant[value=6]()
  %full : M = aten::full(%sizes, %half, %dtype, %none, %none, %none)
  %v1 : Float(2, 2, strides=[3, 1], device=cpu) = aten::as_strided(%e, %columns, %strides, %one)
  %w1 : Float(2, 2, strides=[2, 1], device=cpu) = aten::tanh(%v1)
  %w2 : Float(2, 2, strides=[2, 1], device=cpu) = aten::neg(%w1)
  %f1 : M = aten::as_strided_scatter(%full, %w1, %columns, %strides, %zero)
  %f2 : M = aten::as_strided_scatter(%f1, %w2, %columns, %strides, %one)
  return (%f2))");

  EXPECT_EQ(graph.operators(), (Names{"exp", "full", "as_strided", "tanh", "neg",
                                      "as_strided_scatter", "as_strided_scatter"}));
  graph.expect_same_results();
}

TEST(Simplify, PartialWritesThatMeetAreNoCat) {
  const Simplified graph(kOneWrite + R"(
  %row : int[] = prim::Constant[value=[1, 3]]()
  %w1 : Float(1, 3, strides=[3, 1], device=cpu) = aten::as_strided(%b, %row, %strides, %zero)
  %s2 : M = aten::as_strided_scatter(%s1, %w1, %row, %strides, %zero)
  return (%s2))");

  EXPECT_EQ(graph.operators(), (Names{"exp", "as_strided", "neg", "as_strided_scatter",
                                      "as_strided", "as_strided_scatter"}));
}

TEST(Simplify, APartialWriteThatAnotherCoversIsNone) {
  const Simplified graph(kOneWrite + R"(
  %w1 : Float(2, 2, strides=[2, 1], device=cpu) = aten::as_strided(%b, %columns, %strides, %one)
  %s2 : M = aten::as_strided_scatter(%s1, %w1, %columns, %strides, %zero)
  %t : M = aten::tanh(%s2)
  return (%t))");

  EXPECT_EQ(graph.operators(), (Names{"exp", "as_strided", "as_strided_scatter", "tanh"}));
  graph.expect_same_results();
}

TEST(Simplify, OperationsInPlaceOnOneViewAreOneWrite) {
  const Simplified graph(kOneWrite + R"(
  %v1 : Float(2, 1, strides=[3, 1], device=cpu) = aten::as_strided(%s1, %column, %strides, %zero)
  %w1 : Float(2, 1, strides=[1, 1], device=cpu) = aten::abs(%v1)
  %s2 : M = aten::as_strided_scatter(%s1, %w1, %column, %strides, %zero)
  %t : M = aten::tanh(%s2)
  return (%t))");

  EXPECT_EQ(graph.operators(),
            (Names{"exp", "as_strided", "neg", "abs", "as_strided_scatter", "tanh"}));
  graph.expect_same_results();
}

TEST(Simplify, ReadsAPartOfACat) {
  const Simplified graph(R"(
  %dim : int = prim::Constant[value=0]()
  %sizes : int[] = prim::Constant[value=[2, 3]]()
  %strides : int[] = prim::Constant[value=[3, 1]]()
  %six : int = prim::Constant[value=6]()
  %x : M = aten::exp(%a)
  %y : M = aten::neg(%b)
  %parts : Tensor[] = prim::ListConstruct(%x, %y)
  %c : Float(4, 3, strides=[3, 1], device=cpu) = aten::cat(%parts, %dim)
  %second : M = aten::as_strided(%c, %sizes, %strides, %six)
  %r : M = aten::abs(%second)
  return (%r))");

  EXPECT_EQ(graph.operators(), (Names{"neg", "abs"}));
  graph.expect_same_results();
}

TEST(Simplify, ReadsRowsOfAPartOfACat) {
  const Simplified graph(R"(
  %dim : int = prim::Constant[value=0]()
  %sizes : int[] = prim::Constant[value=[3]]()
  %strides : int[] = prim::Constant[value=[1]]()
  %nine : int = prim::Constant[value=9]()
  %x : M = aten::exp(%a)
  %y : M = aten::neg(%b)
  %parts : Tensor[] = prim::ListConstruct(%x, %y)
  %c : Float(4, 3, strides=[3, 1], device=cpu) = aten::cat(%parts, %dim)
  %second : Float(3, strides=[1], device=cpu) = aten::as_strided(%c, %sizes, %strides, %nine)
  %r : Float(3, strides=[1], device=cpu) = aten::abs(%second)
  return (%r))");

  EXPECT_EQ(graph.operators(), (Names{"neg", "as_strided", "abs"}));
  graph.expect_same_results();
}

TEST(Simplify, MakesACatWhereItIsFirstRead) {
  const Simplified graph(R"(
  %dim : int = prim::Constant[value=0]()
  %x : M = aten::exp(%a)
  %y : M = aten::neg(%b)
  %parts : Tensor[] = prim::ListConstruct(%x, %y)
  %c : Float(4, 3, strides=[3, 1], device=cpu) = aten::cat(%parts, %dim)
  %z : M = aten::mul(%x, %y)
  %w : M = aten::tanh(%z)
  %r : Float(4, 3, strides=[3, 1], device=cpu) = aten::abs(%c)
  return (%w, %r, %c))");

  EXPECT_EQ(graph.operators(), (Names{"exp", "neg", "mul", "tanh", "cat", "abs"}));
  graph.expect_same_results();
}

// The columns of %a after those of %b.
constexpr const char* kColumns = R"(
  %dim : int = prim::Constant[value=1]()
  %parts : Tensor[] = prim::ListConstruct(%b, %a)
  %c : Float(2, 6, strides=[6, 1], device=cpu) = aten::cat(%parts, %dim)
)";

TEST(Simplify, PointwiseOperatorsGoToThePartsOfACat) {
  const Simplified graph(std::string(kColumns) + R"(
  %r : Float(2, 6, strides=[6, 1], device=cpu) = aten::abs(%c)
  %s : Float(2, 6, strides=[6, 1], device=cpu) = aten::mul(%r, %x2)
  return (%s))");

  EXPECT_EQ(graph.operators(), (Names{"abs", "abs", "mul", "mul", "cat"}));
  graph.expect_same_results();
}

TEST(Simplify, OtherOperandsAreReadPartByPart) {
  const Simplified graph(std::string(kColumns) + R"(
  %sizes : int[] = prim::Constant[value=[2, 6]]()
  %strides : int[] = prim::Constant[value=[1, 0]]()
  %zero : int = prim::Constant[value=0]()
  %other : Float(2, 6, strides=[1, 0], device=cpu) = aten::as_strided(%a, %sizes, %strides, %zero)
  %doubled : Float(2, 6, strides=[6, 1], device=cpu) = aten::mul(%other, %x2)
  %r : Float(2, 6, strides=[6, 1], device=cpu) = aten::sub(%doubled, %c, %one)
  return (%r))");

  EXPECT_EQ(graph.operators(),
            (Names{"as_strided", "mul", "as_strided", "sub", "as_strided", "sub", "cat"}));
  graph.expect_same_results();
}

TEST(Simplify, ACatStaysWhereAnotherOperandWouldHaveToBeStored) {
  const Simplified graph(std::string(kColumns) + R"(
  %parts2 : Tensor[] = prim::ListConstruct(%a, %b)
  %d : Float(2, 6, strides=[6, 1], device=cpu) = aten::cat(%parts2, %dim)
  %e : Float(2, 6, strides=[6, 1], device=cpu) = aten::exp(%d)
  %r : Float(2, 6, strides=[6, 1], device=cpu) = aten::mul(%c, %e)
  return (%r, %e, %d))");

  EXPECT_EQ(graph.operators(), (Names{"cat", "exp", "cat", "mul"}));
}

TEST(Simplify, ACatThatOthersReadStaysWhole) {
  const Simplified graph(std::string(kColumns) + R"(
  %r : Float(2, 6, strides=[6, 1], device=cpu) = aten::abs(%c)
  return (%r, %c))");

  EXPECT_EQ(graph.operators(), (Names{"cat", "abs"}));
}

}  // namespace
}  // namespace torch_lazy
