// What the simplify pass removes, and what it leaves.

#include "passes/simplify.h"

#include <cmath>

#include "ir/print.h"
#include "simplified_graph.h"

namespace torch_lazy {
namespace {

using tests::Names;
using tests::Simplified;

TEST(Simplify, MergesEqualComputations) {
  const Simplified graph(R"(
  %x : M = aten::exp(%a)
  %y : M = aten::exp(%a)
  %z : M = aten::mul(%x, %y)
  return (%z))");

  EXPECT_EQ(print_graph(*graph.after), R"(graph(%a : Float(2, 3, strides=[3, 1], device=cpu),
      %b : Float(2, 3, strides=[3, 1], device=cpu)):
  %9 : Float(2, 3, strides=[3, 1], device=cpu) = aten::exp(%a)
  %11 : Float(2, 3, strides=[3, 1], device=cpu) = aten::mul(%9, %9)
  return (%11)
)");
  graph.expect_same_results();
}

TEST(Simplify, KeepsTwoOutputsApart) {
  const Simplified graph(R"(
  %x : M = aten::exp(%a)
  %y : M = aten::exp(%a)
  return (%x, %y))");

  EXPECT_EQ(graph.operators(), (Names{"exp", "exp"}));
}

TEST(Simplify, RemovesWhatNothingReads) {
  const Simplified graph(R"(
  %x : M = aten::exp(%a)
  %y : M = aten::neg(%x)
  %z : M = aten::neg(%b)
  return (%z))");

  EXPECT_EQ(graph.operators(), Names{"neg"});
}

TEST(Simplify, KeepsWhatCanFailOrWritesOrDraws) {
  const Simplified graph(R"(
  %index : Long(1, strides=[1], device=cpu) = prim::Constant[value={7}]()
  %x : Float(2, 1, strides=[1, 1], device=cpu) = aten::index_select(%a, %one, %index)
  %p : float = prim::Constant[value=0.5]()
  %y : M = aten::bernoulli(%a, %p, %none)
  %w : M = aten::copy_(%a, %b, %false)
  return (%b))");

  EXPECT_EQ(graph.operators(), (Names{"index_select", "bernoulli", "copy_"}));
}

TEST(Simplify, DropsNeutralNumbers) {
  const Simplified graph(R"(
  %p : M = aten::mul(%a, %x1)
  %q : M = aten::div(%p, %x1)
  %r : M = aten::sub(%q, %x0, %one)
  %s : M = aten::neg(%r)
  return (%s))");

  EXPECT_EQ(graph.operators(), Names{"neg"});
  graph.expect_same_results();
}

TEST(Simplify, KeepsTheAdditionOfZeroWhichChangesTheSignOfZero) {
  const Simplified graph(R"(
  %p : M = aten::add(%a, %x0, %one)
  return (%p))");

  EXPECT_EQ(graph.operators(), Names{"add"});
}

TEST(Simplify, MultipliesByTheInverseOfAPowerOfTwo) {
  const Simplified graph(R"(
  %p : M = aten::div(%a, %x2)
  %q : M = aten::div(%b, %x3)
  return (%p, %q))");

  EXPECT_EQ(graph.operators(), (Names{"mul", "div"}));
  graph.expect_same_results();
}

TEST(Simplify, UndoesDoubleNegation) {
  const Simplified graph(R"(
  %p : M = aten::neg(%a)
  %q : M = aten::neg(%p)
  %r : M = aten::exp(%q)
  return (%r))");

  EXPECT_EQ(graph.operators(), Names{"exp"});
  graph.expect_same_results();
}

TEST(Simplify, FoldsConstants) {
  const Simplified graph(R"(
  %p : Float(requires_grad=0, device=cpu) = aten::mul(%x2, %x3)
  %q : Float(requires_grad=0, device=cpu) = aten::sqrt(%p)
  %r : M = aten::mul(%a, %q)
  return (%r))");

  EXPECT_EQ(graph.operators(), Names{"mul"});
  graph.expect_same_results();
}

TEST(Simplify, ReadsATensorOfOneNumberAsTheNumber) {
  const Simplified graph(R"(
  %sizes : int[] = prim::Constant[value=[2, 3]]()
  %f : int = prim::Constant[value=6]()
  %ones : M = aten::full(%sizes, %one, %f, %none, %none, %none)
  %p : M = aten::mul(%ones, %a)
  %q : M = aten::exp(%p)
  return (%q))");

  EXPECT_EQ(graph.operators(), Names{"exp"});
  graph.expect_same_results();
}

TEST(Simplify, ShortensChainsOfExactCasts) {
  const Simplified graph(R"(
  %double : int = prim::Constant[value=7]()
  %float : int = prim::Constant[value=6]()
  %p : Double(2, 3, strides=[3, 1], device=cpu) = aten::_to_copy(%a, %double, %none, %none, %none, %false, %none)
  %q : M = aten::_to_copy(%p, %float, %none, %none, %none, %false, %none)
  %r : M = aten::exp(%q)
  return (%r))");

  EXPECT_EQ(graph.operators(), Names{"exp"});
  graph.expect_same_results();
}

TEST(Simplify, KeepsCastsThatRound) {
  const Simplified graph(R"(
  %half : int = prim::Constant[value=15]()
  %float : int = prim::Constant[value=6]()
  %p : BFloat16(2, 3, strides=[3, 1], device=cpu) = aten::_to_copy(%a, %half, %none, %none, %none, %false, %none)
  %q : M = aten::_to_copy(%p, %float, %none, %none, %none, %false, %none)
  return (%q))");

  EXPECT_EQ(graph.operators(), (Names{"_to_copy", "_to_copy"}));
}

TEST(Simplify, DropsCopiesThatNothingCouldTellApart) {
  const Simplified graph(R"(
  %p : M = aten::clone(%a, %none)
  %q : Float(2, 3, strides=[1, 2], device=cpu) = aten::clone(%p, %none)
  %r : M = aten::exp(%q)
  %s : M = aten::clone(%r, %none)
  return (%s))");

  EXPECT_EQ(graph.operators(), Names{"exp"});
  graph.expect_same_results();
}

TEST(Simplify, KeepsCopiesThatAreOutputsOrMutateInputs) {
  const Simplified graph(R"(
  %p : M = aten::clone(%a, %none)
  %q : M = aten::clone(%b, %none)
  %r : M = aten::exp(%a)
  %s : M = aten::exp(%a)
  %w : M = aten::copy_(%a, %q, %false)
  %v : M = aten::copy_(%b, %p, %false)
  return (%r, %s))");

  EXPECT_EQ(graph.operators(), (Names{"clone", "clone", "exp", "exp", "copy_", "copy_"}));
}

TEST(Simplify, DropsWritesOfWhatIsThereAlready) {
  const Simplified graph(R"(
  %false : bool = prim::Constant[value=0]()
  %c : M = aten::clone(%a, %none)
  %d : M = aten::clone(%b, %none)
  %r : M = aten::exp(%a)
  %same : M = aten::copy_(%a, %c, %false)
  %other : M = aten::copy_(%a, %d, %false)
  return (%r))");

  EXPECT_EQ(graph.operators(), (Names{"clone", "exp", "copy_"}));
}

TEST(Simplify, DropsViewsOfAllOfAValue) {
  const std::string body = R"(
  %sizes : int[] = prim::Constant[value=[2, 3]]()
  %strides : int[] = prim::Constant[value=[3, 1]]()
  %zero : int = prim::Constant[value=0]()
  %v : M = aten::as_strided(%a, %sizes, %strides, %zero)
  %r : M = aten::exp(%v)
  return (%r))";

  EXPECT_EQ(Simplified(body).operators(), Names{"exp"});
  EXPECT_EQ(Simplified(body, {5, 0}).operators(), (Names{"as_strided", "exp"}));
  EXPECT_EQ(Simplified(body, {}).operators(), (Names{"as_strided", "exp"}));
}

TEST(Simplify, KeepsACopyWhoseLayoutMatters) {
  const Simplified graph(R"(
  %c : Float(2, 3, strides=[1, 2], device=cpu) = aten::clone(%a, %none)
  %sizes : int[] = prim::Constant[value=[6]]()
  %strides : int[] = prim::Constant[value=[1]]()
  %zero : int = prim::Constant[value=0]()
  %v : Float(6, strides=[1], device=cpu) = aten::as_strided(%c, %sizes, %strides, %zero)
  %r : Float(6, strides=[1], device=cpu) = aten::exp(%v)
  return (%r))");

  EXPECT_EQ(graph.operators(), (Names{"clone", "as_strided", "exp"}));
}

}  // namespace
}  // namespace torch_lazy
