// Graphs of core operators and the groups that they become.

#include "passes/fuse.h"

#include <gtest/gtest.h>

#include "named_graph.h"

namespace torch_lazy {
namespace {

using tests::named_core_graph;

std::string fused(const std::string& text) {
  const CoreGraph graph = named_core_graph(text);
  return to_string(graph, fuse(graph));
}

const std::string kChain = R"(graph(%a : Float(4, 8, strides=[8, 1], device=cpu),
      %b : Float(8, strides=[1], device=cpu)):
  %one : int = prim::Constant[value=1]()
  %s : Float(4, 8, strides=[8, 1], device=cpu) = aten::add(%a, %b, %one)
  %t : Float(4, 8, strides=[8, 1], device=cpu) = aten::exp(%s)
  %r : Float(4, 8, strides=[8, 1], device=cpu) = aten::mul(%t, %s)
  return (%r))";

// y = softmax(a, 1)
const std::string kSoftmax = R"(graph(%a : Float(4, 8, strides=[8, 1], device=cpu)):
  %one : int = prim::Constant[value=1]()
  %dims : int[] = prim::Constant[value=[1]]()
  %keep : bool = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %m : Float(4, 1, strides=[1, 1], device=cpu) = aten::amax(%a, %dims, %keep)
  %d : Float(4, 8, strides=[8, 1], device=cpu) = aten::sub(%a, %m, %one)
  %e : Float(4, 8, strides=[8, 1], device=cpu) = aten::exp(%d)
  %z : Float(4, 1, strides=[1, 1], device=cpu) = aten::sum(%e, %dims, %keep, %none)
  %y : Float(4, 8, strides=[8, 1], device=cpu) = aten::div(%e, %z)
  return (%y))";

TEST(Fuse, AChainOfPointwiseOperatorsIsOneGroup) {
  EXPECT_EQ(fused(kChain), "{s, t, r | store r} [4, 8]\n");
}

TEST(Fuse, SoftmaxIsOneGroup) {
  EXPECT_EQ(fused(kSoftmax), "{m, d, e, z, y | store y} [4, 8~]\n");
}

TEST(Fuse, WhatFollowsAReductionRowByRowJoinsIt) {
  EXPECT_EQ(fused(R"(graph(%a : Float(4, 8, strides=[8, 1], device=cpu)):
  %dims : int[] = prim::Constant[value=[1]]()
  %keep : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %s : Float(4, strides=[1], device=cpu) = aten::sum(%a, %dims, %keep, %none)
  %r : Float(4, strides=[1], device=cpu) = aten::exp(%s)
  return (%r))"),
            "{s, r | store r} [4, 8~]\n");
}

TEST(Fuse, ARangeIsRematerializedWhereItIsRead) {
  EXPECT_EQ(fused(R"(graph(%a : Long(2, 3, strides=[3, 1], device=cpu)):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %six : int = prim::Constant[value=6]()
  %long : int = prim::Constant[value=4]()
  %none : NoneType = prim::Constant()
  %sizes : int[] = prim::Constant[value=[2, 3]]()
  %strides : int[] = prim::Constant[value=[3, 1]]()
  %i : Long(6, strides=[1], device=cpu) = aten::arange(%zero, %six, %one, %long, %none, %none, %none)
  %v : Long(2, 3, strides=[3, 1], device=cpu) = aten::as_strided(%i, %sizes, %strides, %zero)
  %r : Long(2, 3, strides=[3, 1], device=cpu) = aten::mul(%a, %v)
  return (%r))"),
            "{r | store r | rematerialize i} [2, 3]\n");
}

TEST(Fuse, ARangeThatIsAResultIsStored) {
  EXPECT_EQ(fused(R"(graph(%a : Long(6, strides=[1], device=cpu)):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %six : int = prim::Constant[value=6]()
  %long : int = prim::Constant[value=4]()
  %none : NoneType = prim::Constant()
  %i : Long(6, strides=[1], device=cpu) = aten::arange(%zero, %six, %one, %long, %none, %none, %none)
  %r : Long(6, strides=[1], device=cpu) = aten::mul(%a, %i)
  return (%i, %r))"),
            "{i, r | store i r} [6]\n");
}

TEST(Fuse, ReductionsOverDifferentDimensionsAreTwoGroups) {
  EXPECT_EQ(fused(R"(graph(%a : Float(4, 8, strides=[8, 1], device=cpu)):
  %first : int[] = prim::Constant[value=[0]]()
  %last : int[] = prim::Constant[value=[1]]()
  %keep : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %rows : Float(4, strides=[1], device=cpu) = aten::sum(%a, %last, %keep, %none)
  %columns : Float(8, strides=[1], device=cpu) = aten::sum(%a, %first, %keep, %none)
  return (%rows, %columns))"),
            "{rows | store rows} [4, 8~]\n{columns | store columns} [4~, 8]\n");
}

TEST(Fuse, AReductionOfAReductionIsAnotherGroup) {
  EXPECT_EQ(fused(R"(graph(%a : Float(4, 8, strides=[8, 1], device=cpu)):
  %first : int[] = prim::Constant[value=[0]]()
  %last : int[] = prim::Constant[value=[1]]()
  %keep : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %rows : Float(4, strides=[1], device=cpu) = aten::sum(%a, %last, %keep, %none)
  %all : Float(device=cpu) = aten::sum(%rows, %first, %keep, %none)
  return (%all))"),
            "{rows | store rows} [4, 8~]\n{all | store all} [4~]\n");
}

TEST(Fuse, ALongDomainIsReadAgainInParallelAfterItWasReducedToOnePoint) {
  EXPECT_EQ(fused(R"(graph(%a : Float(70000, strides=[1], device=cpu)):
  %dims : int[] = prim::Constant[value=[0]]()
  %keep : bool = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %s : Float(1, strides=[1], device=cpu) = aten::sum(%a, %dims, %keep, %none)
  %r : Float(70000, strides=[1], device=cpu) = aten::div(%a, %s)
  return (%r))"),
            "{s | store s} [70000~]\n{r | store r} [70000]\n");
}

TEST(Fuse, ALibraryCallThatReadsAGroupClosesIt) {
  EXPECT_EQ(fused(R"(graph(%a : Float(4, 4, strides=[4, 1], device=cpu)):
  %s : Float(4, 4, strides=[4, 1], device=cpu) = aten::exp(%a)
  %m : Float(4, 4, strides=[4, 1], device=cpu) = aten::mm(%s, %s)
  %t : Float(4, 4, strides=[4, 1], device=cpu) = aten::sin(%s)
  %r : Float(4, 4, strides=[4, 1], device=cpu) = aten::mul(%m, %t)
  return (%r))"),
            "{s | store s} [4, 4]\naten::mm m\n{t, r | store r} [4, 4]\n");
}

TEST(Fuse, AGroupThatIsReadRunsWithAnEarlierOneWhoseValuesItReads) {
  EXPECT_EQ(fused(R"(graph(%a : Float(4, 4, strides=[4, 1], device=cpu),
      %b : Float(4, 4, strides=[4, 1], device=cpu)):
  %s : Float(4, 4, strides=[4, 1], device=cpu) = aten::exp(%a)
  %m : Float(4, 4, strides=[4, 1], device=cpu) = aten::mm(%s, %s)
  %t : Float(4, 4, strides=[4, 1], device=cpu) = aten::sin(%b)
  %u : Float(4, 4, strides=[4, 1], device=cpu) = aten::mul(%s, %t)
  %n : Float(4, 4, strides=[4, 1], device=cpu) = aten::mm(%u, %m)
  return (%n))"),
            "{s, t, u | store s u} [4, 4]\naten::mm m\naten::mm n\n");
}

TEST(Fuse, AGroupThatNothingReadsRunsWithAnEarlierOneToo) {
  EXPECT_EQ(fused(R"(graph(%a : Float(4, 4, strides=[4, 1], device=cpu)):
  %s : Float(4, 4, strides=[4, 1], device=cpu) = aten::exp(%a)
  %m : Float(4, 4, strides=[4, 1], device=cpu) = aten::mm(%s, %s)
  %t : Float(4, 4, strides=[4, 1], device=cpu) = aten::sin(%s)
  return (%m, %t))"),
            "{s, t | store s t} [4, 4]\naten::mm m\n");
}

// What reads the number does not have to wait for what its sibling waits for.
TEST(Fuse, ANumberIsComputedWhereWhatItFollowsFromIsMade) {
  EXPECT_EQ(fused(R"(graph(%a : Float(4, strides=[1], device=cpu),
      %b : Float(2, 4, strides=[4, 1], device=cpu)):
  %dims : int[] = prim::Constant[value=[0]]()
  %both : int[] = prim::Constant[value=[0, 1]]()
  %no : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %s : Float(device=cpu) = aten::sum(%a, %dims, %no, %none)
  %t : Float(2, 4, strides=[4, 1], device=cpu) = aten::exp(%b)
  %u : Float(2, 4, strides=[4, 1], device=cpu) = aten::mul(%t, %s)
  %v : Float(device=cpu) = aten::sum(%u, %both, %no, %none)
  %mean : Float(device=cpu) = aten::div(%v, %s)
  %r : Float(device=cpu) = aten::reciprocal(%s)
  %w : Float(2, 4, strides=[4, 1], device=cpu) = aten::mul(%u, %r)
  return (%mean, %w))"),
            "{s, r | store s r} [4~]\n{t, u, v, mean, w | store mean w} [2~, 4~]\n");
}

TEST(Fuse, AGroupThatReadsALibraryCallRunsAfterIt) {
  EXPECT_EQ(fused(R"(graph(%a : Float(4, 4, strides=[4, 1], device=cpu)):
  %s : Float(4, 4, strides=[4, 1], device=cpu) = aten::exp(%a)
  %m : Float(4, 4, strides=[4, 1], device=cpu) = aten::mm(%s, %s)
  %u : Float(4, 4, strides=[4, 1], device=cpu) = aten::mul(%s, %m)
  %n : Float(4, 4, strides=[4, 1], device=cpu) = aten::mm(%u, %m)
  return (%n))"),
            "{s | store s} [4, 4]\naten::mm m\n{u | store u} [4, 4]\naten::mm n\n");
}

TEST(Fuse, AGroupWithAGatherStaysWhereItIs) {
  EXPECT_EQ(fused(R"(graph(%a : Float(4, 4, strides=[4, 1], device=cpu),
      %b : Float(9, 4, strides=[4, 1], device=cpu),
      %i : Long(4, strides=[1], device=cpu)):
  %dim : int = prim::Constant[value=0]()
  %s : Float(4, 4, strides=[4, 1], device=cpu) = aten::exp(%a)
  %m : Float(4, 4, strides=[4, 1], device=cpu) = aten::mm(%s, %s)
  %t : Float(4, 4, strides=[4, 1], device=cpu) = aten::index_select(%b, %dim, %i)
  %u : Float(4, 4, strides=[4, 1], device=cpu) = aten::mul(%s, %t)
  %n : Float(4, 4, strides=[4, 1], device=cpu) = aten::mm(%u, %m)
  return (%n))"),
            "{s | store s} [4, 4]\naten::mm m\n{t, u | store u} [4, 4]\naten::mm n\n");
}

TEST(Fuse, AGroupDoesNotRunBeforeAThirdOneThatItReads) {
  EXPECT_EQ(
      fused(R"(graph(%a : Float(4, 4, strides=[4, 1], device=cpu)):
  %s : Float(4, 4, strides=[4, 1], device=cpu) = aten::exp(%a)
  %m : Float(4, 4, strides=[4, 1], device=cpu) = aten::mm(%s, %s)
  %v : Float(4, 4, strides=[4, 1], device=cpu) = aten::sin(%m)
  %p : Float(4, 4, strides=[4, 1], device=cpu) = aten::mm(%v, %v)
  %u : Float(4, 4, strides=[4, 1], device=cpu) = aten::mul(%s, %v)
  %n : Float(4, 4, strides=[4, 1], device=cpu) = aten::mm(%u, %p)
  return (%n))"),
      "{s | store s} [4, 4]\naten::mm m\n{v, u | store v u} [4, 4]\naten::mm p\naten::mm n\n");
}

TEST(Fuse, NodesThatReadTheSameInputAreSiblings) {
  EXPECT_EQ(fused(R"(graph(%a : Float(4, 8, strides=[8, 1], device=cpu)):
  %x : Float(4, 8, strides=[8, 1], device=cpu) = aten::exp(%a)
  %y : Float(4, 8, strides=[8, 1], device=cpu) = aten::sin(%a)
  return (%x, %y))"),
            "{x, y | store x y} [4, 8]\n");
}

TEST(Fuse, NodesThatHaveNothingInCommonStayApart) {
  EXPECT_EQ(fused(R"(graph(%a : Float(4, 8, strides=[8, 1], device=cpu),
      %b : Float(4, 8, strides=[8, 1], device=cpu)):
  %x : Float(4, 8, strides=[8, 1], device=cpu) = aten::exp(%a)
  %y : Float(4, 8, strides=[8, 1], device=cpu) = aten::sin(%b)
  return (%x, %y))"),
            "{x | store x} [4, 8]\n{y | store y} [4, 8]\n");
}

TEST(Fuse, TwoGroupsThatMeetBecomeOne) {
  EXPECT_EQ(fused(R"(graph(%a : Float(4, 8, strides=[8, 1], device=cpu),
      %b : Float(4, 8, strides=[8, 1], device=cpu)):
  %x : Float(4, 8, strides=[8, 1], device=cpu) = aten::exp(%a)
  %y : Float(4, 8, strides=[8, 1], device=cpu) = aten::sin(%b)
  %r : Float(4, 8, strides=[8, 1], device=cpu) = aten::mul(%x, %y)
  return (%r))"),
            "{x, y, r | store r} [4, 8]\n");
}

TEST(Fuse, AGatherReadsItsSourceFromMemory) {
  EXPECT_EQ(fused(R"(graph(%a : Float(4, 8, strides=[8, 1], device=cpu),
      %i : Long(4, strides=[1], device=cpu)):
  %dim : int = prim::Constant[value=0]()
  %x : Float(4, 8, strides=[8, 1], device=cpu) = aten::exp(%a)
  %y : Float(4, 8, strides=[8, 1], device=cpu) = aten::index_select(%x, %dim, %i)
  return (%y))"),
            "{x | store x} [4, 8]\n{y | store y} [4, 8]\n");
}

TEST(Fuse, SixReductionsAreAKernelAtMost) {
  std::string text = R"(graph(%a : Float(4, 8, strides=[8, 1], device=cpu)):
  %dims : int[] = prim::Constant[value=[1]]()
  %keep : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant())";
  for (const char* name : {"r0", "r1", "r2", "r3", "r4", "r5", "r6"})
    text += std::string("\n  %") + name +
            " : Float(4, strides=[1], device=cpu) = aten::sum(%a, %dims, %keep, %none)";

  EXPECT_EQ(fused(text + "\n  return (%r0, %r1, %r2, %r3, %r4, %r5, %r6)"),
            "{r0, r1, r2, r3, r4, r5 | store r0 r1 r2 r3 r4 r5} [4, 8~]\n"
            "{r6 | store r6} [4, 8~]\n");
}

TEST(Fuse, WhatIsMadeForAReductionThatIsTooManyIsMadeInItsKernel) {
  std::string text = R"(graph(%a : Float(4, 8, strides=[8, 1], device=cpu)):
  %dims : int[] = prim::Constant[value=[1]]()
  %keep : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant())";
  std::string returned;
  for (const char* number : {"0", "1", "2", "3", "4", "5", "6"}) {
    text += std::string("\n  %x") + number +
            " : Float(4, 8, strides=[8, 1], device=cpu) = aten::mul(%a, %a)\n  %r" + number +
            " : Float(4, strides=[1], device=cpu) = aten::sum(%x" + number +
            ", %dims, %keep, %none)";
    returned += (returned.empty() ? "%r" : ", %r") + std::string(number);
  }

  EXPECT_EQ(fused(text + "\n  return (" + returned + ")"),
            "{x0, r0, x1, r1, x2, r2, x3, r3, x4, r4, x5, r5 | store r0 r1 r2 r3 r4 r5} [4, 8~]\n"
            "{x6, r6 | store r6} [4, 8~]\n");
}

// where(c, x, y) of the ends of three chains of forty nodes each.
std::string three_chains() {
  std::string text = R"(graph(%a : Bool(8, strides=[1], device=cpu),
      %b : Float(8, strides=[1], device=cpu),
      %d : Float(8, strides=[1], device=cpu)):)";
  const auto chain = [&](const std::string& from, const std::string& name, const char* type,
                         const char* op) {
    std::string last = from;
    for (int i = 0; i < 40; ++i) {
      const std::string next = name + std::to_string(i);
      text += "\n  %" + next + " : " + type + "(8, strides=[1], device=cpu) = aten::" + op + "(%" +
              last + ")";
      last = next;
    }
  };
  chain("a", "c", "Bool", "logical_not");
  chain("b", "x", "Float", "exp");
  chain("d", "y", "Float", "tanh");
  return text + R"(
  %r : Float(8, strides=[1], device=cpu) = aten::where(%c39, %x39, %y39)
  return (%r))";
}

TEST(Fuse, GroupsThatTogetherAreTooLargeStayApart) {
  const std::vector<FusedItem> items = fuse(named_core_graph(three_chains()));

  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(std::get<FusionGroup>(items[0]).nodes.size(), 40u);
  EXPECT_EQ(std::get<FusionGroup>(items[1]).nodes.size(), 81u);
}

// The gates of an LSTM cell: a sum of two products of which two slices are read.
const std::string kGates = R"(graph(%a : Float(2, 3, strides=[3, 1], device=cpu),
      %w : Float(3, 8, strides=[8, 1], device=cpu)):
  %one : int = prim::Constant[value=1]()
  %sizes : int[] = prim::Constant[value=[2, 4]]()
  %strides : int[] = prim::Constant[value=[8, 1]]()
  %zero : int = prim::Constant[value=0]()
  %four : int = prim::Constant[value=4]()
  %m : Float(2, 8, strides=[8, 1], device=cpu) = aten::mm(%a, %w)
  %n : Float(2, 8, strides=[8, 1], device=cpu) = aten::mm(%a, %w)
  %gates : Float(2, 8, strides=[8, 1], device=cpu) = aten::add(%m, %n, %one)
  %left : Float(2, 4, strides=[8, 1], device=cpu) = aten::as_strided(%gates, %sizes, %strides, %zero)
  %i : Float(2, 4, strides=[4, 1], device=cpu) = aten::exp(%left)
  %right : Float(2, 4, strides=[8, 1], device=cpu) = aten::as_strided(%gates, %sizes, %strides, %four)
  %g : Float(2, 4, strides=[4, 1], device=cpu) = aten::tanh(%right)
  %c : Float(2, 4, strides=[4, 1], device=cpu) = aten::mul(%i, %g)
  return (%c))";

TEST(Fuse, SlicesOfGatesAreComputedByTheirReaders) {
  const CoreGraph graph = named_core_graph(kGates);
  const std::vector<FusedItem> items = fuse(graph);

  EXPECT_EQ(to_string(graph, items),
            "aten::mm m\naten::mm n\n{i, g, c | store c | rematerialize gates} [2, 4]\n");
}

NodeId node_of(const CoreGraph& graph, const std::string& name) {
  for (const CoreValue& value : graph.values)
    if (value.value && value.value->debugName() == name) return value.producer;
  throw std::invalid_argument("no value is called %" + name);
}

std::string split(const std::string& text, const std::string& before) {
  const CoreGraph graph = named_core_graph(text);
  const std::vector<FusedItem> whole = fuse(graph);
  const auto parts =
      split_before(graph, std::get<FusionGroup>(whole.at(0)), node_of(graph, before));
  return to_string(graph, {parts.begin(), parts.end()});
}

TEST(SplitBefore, StoresWhatTheSecondPartReads) {
  EXPECT_EQ(split(kChain, "r"), "{s, t | store s t} [4, 8]\n{r | store r} [4, 8]\n");
}

TEST(SplitBefore, GivesEachPartItsOwnDomain) {
  EXPECT_EQ(split(kSoftmax, "d"), "{m | store m} [4, 8~]\n{d, e, z, y | store y} [4, 8~]\n");
  EXPECT_EQ(split(kSoftmax, "y"), "{m, d, e, z | store e z} [4, 8~]\n{y | store y} [4, 8]\n");
}

TEST(SplitBefore, KeepsAPartWithIndicesToCheckThoughNobodyReadsIt) {
  const CoreGraph graph = named_core_graph(R"(graph(%x : Float(4, 2, strides=[2, 1], device=cpu),
      %a : Float(2, 2, strides=[2, 1], device=cpu),
      %i : Long(2, strides=[1], device=cpu)):
  %zero : int = prim::Constant[value=0]()
  %n : Float(2, 2, strides=[2, 1], device=cpu) = aten::neg(%a)
  %g : Float(2, 2, strides=[2, 1], device=cpu) = aten::index_select(%x, %zero, %i)
  %t : Float(2, 2, strides=[2, 1], device=cpu) = aten::mul(%n, %g)
  return (%n))");
  const std::vector<FusedItem> items = fuse(graph);
  const auto& group = std::get<FusionGroup>(items.at(0));

  const auto parts = split_before(graph, group, group.nodes.at(1));

  EXPECT_EQ(to_string(graph, {parts.begin(), parts.end()}),
            "{n | store n} [2, 2]\n{g, t | store} [2, 2]\n");
}

}  // namespace
}  // namespace torch_lazy
