// What kernels rematerialize instead of reading it from memory, as groups before and after.

#include "passes/rematerialize.h"

#include <gtest/gtest.h>

#include <string>

#include "named_graph.h"

namespace torch_lazy {
namespace {

using tests::named_core_graph;

constexpr int64_t kLeastBytes = 1 << 18;

struct Items {
  std::string before, after;
};

Items items_of(const std::string& text) {
  const CoreGraph graph = named_core_graph(text);
  const std::vector<FusedItem> fused = fuse(graph);
  return {to_string(graph, fused), to_string(graph, rematerialize(graph, fused, kLeastBytes))};
}

// A function of %x that a first kernel makes for %y and a second one, after a matrix product, for
// %r. `made` defines %s; `used` defines %r of %m, which is the product.
std::string two_kernels(const std::string& made, const std::string& used,
                        const std::string& result = "%r") {
  return R"(graph(%x : Float(512, 256, strides=[256, 1], device=cpu),
      %w : Float(256, 256, strides=[256, 1], device=cpu),
      %row : Float(512, 1, strides=[1, 1], device=cpu)):
  %one : int = prim::Constant[value=1]()
)" + made +
         R"(
  %y : Float(512, 256, strides=[256, 1], device=cpu) = aten::mul(%x, %s)
  %m : Float(512, 256, strides=[256, 1], device=cpu) = aten::mm(%y, %w)
)" + used +
         "\n  return (" + result + ")";
}

const std::string kExpOfX = "  %s : Float(512, 256, strides=[256, 1], device=cpu) = aten::exp(%x)";
const std::string kReadsBoth =
    "  %t : Float(512, 256, strides=[256, 1], device=cpu) = aten::mul(%m, %s)\n"
    "  %r : Float(512, 256, strides=[256, 1], device=cpu) = aten::mul(%t, %x)";
const std::string kReadsIt =
    "  %r : Float(512, 256, strides=[256, 1], device=cpu) = aten::mul(%m, %s)";

TEST(Rematerialize, WhatIsCheapToMakeOfWhatIsReadAnywayIsNotStored) {
  const Items items = items_of(two_kernels(kExpOfX, kReadsBoth));

  EXPECT_EQ(items.before,
            "{s, y | store s y} [512, 256]\naten::mm m\n{t, r | store r} [512, 256]\n");
  EXPECT_EQ(
      items.after,
      "{s, y | store y} [512, 256]\naten::mm m\n{t, r | store r | rematerialize s} [512, 256]\n");
}

TEST(Rematerialize, WhatCostsMoreThanTheMemoryIsStored) {
  const Items items = items_of(two_kernels(
      "  %s : Float(512, 256, strides=[256, 1], device=cpu) = aten::pow(%x, %x)", kReadsBoth));

  EXPECT_EQ(items.after, items.before);
}

TEST(Rematerialize, ALargeInputThatWasNotReadIsPartOfTheCost) {
  // exp and the line for %x are as dear as writing and reading it.
  const Items dear =
      items_of(two_kernels("  %e : Float(512, 256, strides=[256, 1], device=cpu) = aten::exp(%x)\n"
                           "  %f : Float(512, 256, strides=[256, 1], device=cpu) = aten::neg(%e)\n"
                           "  %s : Float(512, 256, strides=[256, 1], device=cpu) = aten::neg(%f)",
                           kReadsIt));
  const Items cheap = items_of(two_kernels(kExpOfX, kReadsIt));

  EXPECT_EQ(dear.after, dear.before);
  EXPECT_EQ(
      cheap.after,
      "{s, y | store y} [512, 256]\naten::mm m\n{r | store r | rematerialize s} [512, 256]\n");
}

TEST(Rematerialize, ARowsNumberIsReadAtNoCost) {
  const Items items = items_of(two_kernels(
      "  %d : Float(512, 256, strides=[256, 1], device=cpu) = aten::sub(%x, %row, %one)\n"
      "  %s : Float(512, 256, strides=[256, 1], device=cpu) = aten::exp(%d)",
      kReadsBoth));

  EXPECT_EQ(items.after,
            "{d, s, y | store y} [512, 256]\naten::mm m\n"
            "{t, r | store r | rematerialize d s} [512, 256]\n");
}

TEST(Rematerialize, ValuesThatAreMadeOfOneAnotherAreRematerializedTogether) {
  const Items items = items_of(
      two_kernels("  %e : Float(512, 256, strides=[256, 1], device=cpu) = aten::exp(%x)\n"
                  "  %s : Float(512, 256, strides=[256, 1], device=cpu) = aten::mul(%e, %x)",
                  "  %t : Float(512, 256, strides=[256, 1], device=cpu) = aten::mul(%m, %s)\n"
                  "  %u : Float(512, 256, strides=[256, 1], device=cpu) = aten::mul(%t, %e)\n"
                  "  %r : Float(512, 256, strides=[256, 1], device=cpu) = aten::mul(%u, %x)"));

  EXPECT_EQ(items.before,
            "{e, s, y | store e s y} [512, 256]\naten::mm m\n{t, u, r | store r} [512, 256]\n");
  EXPECT_EQ(items.after,
            "{e, s, y | store y} [512, 256]\naten::mm m\n"
            "{t, u, r | store r | rematerialize e s} [512, 256]\n");
}

TEST(Rematerialize, WiderLinesAreCountedAsMany) {
  const std::string text = R"(graph(%x : Float(1024, 512, strides=[512, 1], device=cpu),
      %p : Float(2, 1024, 512, strides=[524288, 512, 1], device=cpu),
      %q : Float(3, 1024, 512, strides=[524288, 512, 1], device=cpu)):
  %zero : int = prim::Constant[value=0]()
  %b : Bool(1024, 512, strides=[512, 1], device=cpu) = aten::gt(%x, %zero)
  %r : Float(2, 1024, 512, strides=[524288, 512, 1], device=cpu) = aten::mul(%p, %b)
  %s : Float(3, 1024, 512, strides=[524288, 512, 1], device=cpu) = aten::mul(%q, %b)
  return (%r, %s))";

  // For a line of bools each reader would read four lines of floats.
  EXPECT_EQ(items_of(text).after, items_of(text).before);
}

TEST(Rematerialize, WhatLiesInAnotherOrderIsNotReadInstead) {
  const Items items = items_of(R"(graph(%x : Float(256, 512, strides=[512, 1], device=cpu),
      %p : Float(2, 512, 256, strides=[131072, 256, 1], device=cpu),
      %q : Float(3, 512, 256, strides=[131072, 256, 1], device=cpu)):
  %zero : int = prim::Constant[value=0]()
  %sizes : int[] = prim::Constant[value=[512, 256]]()
  %strides : int[] = prim::Constant[value=[1, 512]]()
  %v : Float(512, 256, strides=[1, 512], device=cpu) = aten::as_strided(%x, %sizes, %strides, %zero)
  %n : Float(512, 256, strides=[256, 1], device=cpu) = aten::neg(%v)
  %r : Float(2, 512, 256, strides=[131072, 256, 1], device=cpu) = aten::mul(%p, %n)
  %s : Float(3, 512, 256, strides=[131072, 256, 1], device=cpu) = aten::mul(%q, %n)
  return (%r, %s))");

  EXPECT_EQ(items.after, items.before);
}

TEST(Rematerialize, AnInputThatIsWrittenIsNotReadLater) {
  const Items items = items_of(
      two_kernels(kExpOfX, kReadsIt + "\n  %f : bool = prim::Constant[value=0]()\n"
                                      "  %c : Float(512, 256, strides=[256, 1], device=cpu) = "
                                      "aten::copy_(%x, %y, %f)"));

  EXPECT_EQ(items.after, items.before);
}

TEST(Rematerialize, WhatTheCallerReadsIsStored) {
  const Items items = items_of(two_kernels(kExpOfX, kReadsBoth, "%r, %s"));

  EXPECT_EQ(items.after, items.before);
}

TEST(Rematerialize, WhatALibraryCallReadsIsStored) {
  const Items items = items_of(two_kernels(
      kExpOfX,
      "  %n : Float(512, 256, strides=[256, 1], device=cpu) = aten::mm(%s, %w)\n" + kReadsBoth,
      "%r, %n"));

  EXPECT_EQ(items.after, items.before);
}

TEST(Rematerialize, WhatIsReadThroughAViewIsStored) {
  const Items items =
      items_of(two_kernels(kExpOfX,
                           "  %zero : int = prim::Constant[value=0]()\n"
                           "  %sizes : int[] = prim::Constant[value=[256, 512]]()\n"
                           "  %strides : int[] = prim::Constant[value=[1, 256]]()\n"
                           "  %v : Float(256, 512, strides=[1, 256], device=cpu) = "
                           "aten::as_strided(%s, %sizes, %strides, %zero)\n"
                           "  %r : Float(256, 512, strides=[512, 1], device=cpu) = aten::exp(%v)",
                           "%r, %m"));

  EXPECT_EQ(items.after, items.before);
}

TEST(Rematerialize, ASmallValueIsStored) {
  std::string text = two_kernels(kExpOfX, kReadsBoth);
  for (size_t at; (at = text.find("512")) != std::string::npos;) text.replace(at, 3, "2");

  const Items items = items_of(text);

  EXPECT_EQ(items.after, items.before);
}

TEST(Rematerialize, AKernelThatStoresNothingAnyMoreIsLeftOut) {
  const Items items = items_of(R"(graph(%x : Float(512, 256, strides=[256, 1], device=cpu),
      %p : Float(2, 512, 256, strides=[131072, 256, 1], device=cpu),
      %q : Float(3, 512, 256, strides=[131072, 256, 1], device=cpu)):
  %n : Float(512, 256, strides=[256, 1], device=cpu) = aten::neg(%x)
  %r : Float(2, 512, 256, strides=[131072, 256, 1], device=cpu) = aten::mul(%p, %n)
  %s : Float(3, 512, 256, strides=[131072, 256, 1], device=cpu) = aten::mul(%q, %n)
  return (%r, %s))");

  EXPECT_EQ(items.before,
            "{n | store n} [512, 256]\n{r | store r} [2, 512, 256]\n"
            "{s | store s} [3, 512, 256]\n");
  EXPECT_EQ(items.after,
            "{r | store r | rematerialize n} [2, 512, 256]\n"
            "{s | store s | rematerialize n} [3, 512, 256]\n");
}

TEST(Rematerialize, AKernelWithIndicesToCheckStaysThoughNobodyReadsIt) {
  const Items items = items_of(R"(graph(%x : Float(4, 2, strides=[2, 1], device=cpu),
      %i : Long(2, strides=[1], device=cpu)):
  %zero : int = prim::Constant[value=0]()
  %g : Float(2, 2, strides=[2, 1], device=cpu) = aten::index_select(%x, %zero, %i)
  %r : Float(4, 2, strides=[2, 1], device=cpu) = aten::neg(%x)
  return (%r))");

  EXPECT_EQ(items.after, "{g | store} [2, 2]\n{r | store r} [4, 2]\n");
}

TEST(Rematerialize, AKernelThatCannotBeOneStoresNoMoreWhenItIsSplit) {
  const CoreGraph graph = named_core_graph(two_kernels(kExpOfX, kReadsBoth));
  const std::vector<FusedItem> items = rematerialize(graph, fuse(graph), kLeastBytes);
  const auto& first = std::get<FusionGroup>(items.at(0));

  const auto parts = split_before(graph, first, first.nodes.at(1));

  // %s is stored for %y, which is in the other part, and not for the last kernel.
  EXPECT_EQ(to_string(graph, std::vector<FusedItem>(parts.begin(), parts.end())),
            "{s | store s} [512, 256]\n{y | store y} [512, 256]\n");
}

}  // namespace
}  // namespace torch_lazy
