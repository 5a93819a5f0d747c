// What the check of the form between passes finds.

#include "passes/verify_functional.h"

#include <gtest/gtest.h>

#include <string>

#include "graph_evaluator.h"
#include "passes/graph_builder.h"

namespace torch_lazy {
namespace {

// What is wrong with a graph of one input of 4 elements at offset 1 of a storage of 6, and these
// lines; "nothing" where all is well. Values that are read from text are called by numbers.
std::string complaint(const std::string& lines) {
  const auto graph = tests::parse_graph(
      "graph(%x : Float(4, strides=[1], device=cpu)):\n"
      "  %zero : int = prim::Constant[value=0]()\n  %one : int = prim::Constant[value=1]()\n"
      "  %three : int = prim::Constant[value=3]()\n  %no : bool = prim::Constant[value=0]()\n"
      "  %ones : int[] = prim::ListConstruct(%one)\n" +
      lines);
  for (torch::jit::Node* node : graph->nodes())
    if (!node->kind().is_prim()) node->i_(kOriginAttribute, 0);
  try {
    verify_functional(*graph, {{.storage_bytes = 24, .offset = 1}});
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "nothing";
}

constexpr const char* kNeg = "  %y : Float(4, strides=[1], device=cpu) = aten::neg(%x)\n";

std::string with_neg(const std::string& lines) {
  return kNeg + lines;
}

TEST(VerifyFunctional, AcceptsViewsAndWritesAtTheEnd) {
  EXPECT_EQ(complaint(with_neg("  %v : Float(1, strides=[1], device=cpu) = "
                               "aten::as_strided(%x, %ones, %ones, %three)\n"
                               "  %z : Float(1, strides=[1], device=cpu) = aten::exp(%v)\n"
                               "  %w : Float(4, strides=[1], device=cpu) = "
                               "aten::copy_(%x, %y, %no)\n  return (%z)\n")),
            "nothing");
}

TEST(VerifyFunctional, AcceptsWhatIsReturnedAndWritten) {
  EXPECT_EQ(complaint(with_neg("  %w : Float(4, strides=[1], device=cpu) = "
                               "aten::copy_(%x, %y, %no)\n  return (%y)\n")),
            "nothing");
}

TEST(VerifyFunctional, FindsWrites) {
  EXPECT_EQ(complaint(with_neg("  %z : Float(4, strides=[1], device=cpu) = aten::exp_(%y)\n"
                               "  return (%z)\n")),
            "%7 = aten::exp_ writes an argument");
}

TEST(VerifyFunctional, FindsNodesAfterWrites) {
  EXPECT_EQ(complaint(with_neg("  %w : Float(4, strides=[1], device=cpu) = "
                               "aten::copy_(%x, %y, %no)\n"
                               "  %z : Float(4, strides=[1], device=cpu) = aten::exp(%x)\n"
                               "  return (%z)\n")),
            "%8 = aten::exp follows a write to an input");
}

TEST(VerifyFunctional, FindsOtherViewOperators) {
  EXPECT_EQ(complaint(with_neg("  %z : Float(4, strides=[1], device=cpu) = aten::alias(%y)\n"
                               "  return (%y)\n")),
            "%7 = aten::alias may return a view");
}

TEST(VerifyFunctional, FindsViewsOfViews) {
  EXPECT_EQ(complaint(with_neg("  %v : Float(1, strides=[1], device=cpu) = "
                               "aten::as_strided(%y, %ones, %ones, %zero)\n"
                               "  %z : Float(1, strides=[1], device=cpu) = "
                               "aten::as_strided(%v, %ones, %ones, %zero)\n  return (%y)\n")),
            "%8 = aten::as_strided is a view of a view");
}

TEST(VerifyFunctional, FindsViewsBeyondMemory) {
  EXPECT_EQ(complaint(with_neg("  %five : int = prim::Constant[value=5]()\n"
                               "  %v : Float(1, strides=[1], device=cpu) = "
                               "aten::as_strided(%y, %ones, %ones, %five)\n  return (%y)\n")),
            "%8 = aten::as_strided leaves the memory of %6");
}

TEST(VerifyFunctional, FindsOutputsThatShareMemory) {
  EXPECT_EQ(complaint(with_neg("  return (%y, %y)\n")), "%6 is returned twice");
  EXPECT_EQ(complaint("  return (%x)\n"), "output %x is no node's own memory");
}

}  // namespace
}  // namespace torch_lazy
