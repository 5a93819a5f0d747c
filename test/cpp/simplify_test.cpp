// What the simplify pass removes, and what it leaves.

#include "passes/simplify.h"

#include <gtest/gtest.h>

#include <cmath>

#include "graph_evaluator.h"
#include "ir/print.h"
#include "ir/verify_graph.h"

namespace torch_lazy {
namespace {

using testing::evaluate;
using testing::parse_graph;

constexpr const char* kMatrix = "Float(2, 3, strides=[3, 1], device=cpu)";

// "M" stands for a matrix type; the graph has inputs %a and %b of it, and the constants below.
std::string with_types(std::string body) {
  std::string text = R"(graph(%a : M, %b : M):
  %none : NoneType = prim::Constant()
  %false : bool = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %x0 : Float(requires_grad=0, device=cpu) = prim::Constant[value={0}]()
  %x1 : Float(requires_grad=0, device=cpu) = prim::Constant[value={1}]()
  %x2 : Float(requires_grad=0, device=cpu) = prim::Constant[value={2}]()
  %x3 : Float(requires_grad=0, device=cpu) = prim::Constant[value={3}]()
)" + body;
  for (size_t at = text.find(": M"); at != std::string::npos; at = text.find(": M"))
    text.replace(at + 2, 1, kMatrix);
  return text;
}

struct Simplified {
  std::shared_ptr<torch::jit::Graph> before, after;

  explicit Simplified(const std::string& body, std::vector<int64_t> offsets = {0, 0})
      : before(parse_graph(with_types(body))), after(before->copy()) {
    simplify(after, offsets);
    verify_graph(*after);
  }

  // Operators that are left, by name.
  std::vector<std::string> operators() const {
    std::vector<std::string> names;
    for (const auto* node : after->nodes())
      if (!node->kind().is_prim()) names.push_back(node->kind().toUnqualString());
    return names;
  }

  void expect_same_results() const {
    const at::Tensor a = at::randn({2, 3}), b = at::randn({2, 3});
    a[0][0] = -0.0;
    b[0][1] = std::nan("");
    const std::vector<at::Tensor> first{a.clone(), b.clone()}, second{a.clone(), b.clone()};
    const auto expected = evaluate(*before, first), actual = evaluate(*after, second);
    ASSERT_EQ(expected.size(), actual.size());
    const auto bits = [](const at::Tensor& x) {
      return x.scalar_type() == at::kFloat ? x.contiguous().view(at::kInt) : x;
    };
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(at::equal(bits(expected[i]), bits(actual[i])));
      EXPECT_EQ(expected[i].strides(), actual[i].strides());
    }
    for (size_t i = 0; i < first.size(); ++i)
      EXPECT_TRUE(at::equal(bits(first[i]), bits(second[i])));
  }
};

using Names = std::vector<std::string>;

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

TEST(Simplify, KeepsCopiesThatAreOutputsOrWriteBacks) {
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

// Column 0 of exp(a) is negated in place, as %s1.
const std::string kOneWrite = R"(
  %column : int[] = prim::Constant[value=[2, 1]]()
  %columns : int[] = prim::Constant[value=[2, 2]]()
  %strides : int[] = prim::Constant[value=[3, 1]]()
  %zero : int = prim::Constant[value=0]()
  %e : M = aten::exp(%a)
  %v0 : Float(2, 1, strides=[3, 1], device=cpu) = aten::as_strided(%e, %column, %strides, %zero)
  %w0 : Float(2, 1, strides=[1, 1], device=cpu) = aten::neg(%v0)
  %s1 : M = aten::as_strided_scatter(%e, %w0, %column, %strides, %zero)
)";

TEST(Simplify, ReadsWhatAPartialWriteWrote) {
  const Simplified graph(kOneWrite + R"(
  %r : Float(2, 1, strides=[3, 1], device=cpu) = aten::as_strided(%s1, %column, %strides, %zero)
  %t : Float(2, 1, strides=[1, 1], device=cpu) = aten::tanh(%r)
  return (%t))");

  EXPECT_EQ(graph.operators(), (Names{"exp", "as_strided", "neg", "tanh"}));
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

TEST(Simplify, PartialWritesOfAllAreACat) {
  const Simplified graph(kOneWrite + R"(
  %v1 : Float(2, 2, strides=[3, 1], device=cpu) = aten::as_strided(%s1, %columns, %strides, %one)
  %w1 : Float(2, 2, strides=[2, 1], device=cpu) = aten::tanh(%v1)
  %s2 : M = aten::as_strided_scatter(%s1, %w1, %columns, %strides, %one)
  return (%s2))");

  EXPECT_EQ(graph.operators(), (Names{"exp", "as_strided", "neg", "as_strided", "tanh", "cat"}));
  graph.expect_same_results();
}

TEST(Simplify, PartialWritesThatMeetAreNoCat) {
  const Simplified graph(kOneWrite + R"(
  %w1 : Float(2, 2, strides=[2, 1], device=cpu) = aten::as_strided(%b, %columns, %strides, %zero)
  %s2 : M = aten::as_strided_scatter(%s1, %w1, %columns, %strides, %zero)
  return (%s2))");

  EXPECT_EQ(graph.operators(), (Names{"exp", "as_strided", "neg", "as_strided_scatter",
                                      "as_strided", "as_strided_scatter"}));
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
