// Which partial writes become choices by index.

#include "passes/choose_writes.h"

#include <algorithm>

#include "simplified_graph.h"

namespace torch_lazy {
namespace {

using tests::kExp;
using tests::kOneWrite;
using tests::Names;
using tests::Simplified;

struct Chosen : Simplified {
  explicit Chosen(const std::string& body) : Simplified(body) {
    choose_writes(after, std::vector<int64_t>{0, 0});
    verify_graph(*after);
  }

  int64_t count(const char* name) const { return std::ranges::count(operators(), name); }
};

TEST(ChooseWrites, OfWhatIsAtTheSamePlaces) {
  const Chosen graph(kOneWrite + R"(
  %t : M = aten::tanh(%s1)
  return (%t))");

  EXPECT_EQ(graph.operators(),
            (Names{"exp", "neg", "arange", "as_strided", "lt", "where", "tanh"}));
  graph.expect_same_results();
}

TEST(ChooseWrites, OfNumbers) {
  const Chosen graph(kExp + R"(
  %f : Float(2, 1, strides=[1, 1], device=cpu) = aten::full(%column, %half, %none, %none, %none, %none)
  %s1 : M = aten::as_strided_scatter(%e, %f, %column, %strides, %one)
  %t : M = aten::tanh(%s1)
  return (%t))");

  EXPECT_EQ(graph.count("where"), 1);
  EXPECT_EQ(graph.count("full"), 0);
  graph.expect_same_results();
}

TEST(ChooseWrites, OfEverySecondElement) {
  const Chosen graph(kExp + R"(
  %v0 : Float(2, 2, strides=[3, 2], device=cpu) = aten::as_strided(%e, %columns, %every_second, %zero)
  %w0 : Float(2, 2, strides=[2, 1], device=cpu) = aten::neg(%v0)
  %s1 : M = aten::as_strided_scatter(%e, %w0, %columns, %every_second, %zero)
  %t : M = aten::tanh(%s1)
  return (%t))");

  EXPECT_EQ(graph.count("where"), 1);
  EXPECT_EQ(graph.count("bitwise_and"), 1);
  graph.expect_same_results();
}

TEST(ChooseWrites, OneAboveTheOther) {
  const Chosen graph(kOneWrite + R"(
  %w1 : Float(2, 2, strides=[3, 1], device=cpu) = aten::as_strided(%b, %columns, %strides, %one)
  %s2 : M = aten::as_strided_scatter(%s1, %w1, %columns, %strides, %one)
  %v2 : Float(2, strides=[3], device=cpu) = aten::as_strided(%s2, %sizes_of_row, %strides_of_row, %one)
  %w2 : Float(2, strides=[1], device=cpu) = aten::abs(%v2)
  %s3 : M = aten::as_strided_scatter(%s2, %w2, %sizes_of_row, %strides_of_row, %one)
  %t : M = aten::tanh(%s3)
  return (%t))");

  EXPECT_EQ(graph.operators().front(), "exp");
  EXPECT_EQ(graph.count("where"), 3);
  EXPECT_EQ(graph.count("as_strided_scatter"), 0);
  graph.expect_same_results();
}

TEST(ChooseWrites, NotOfWhatIsDearForFewElements) {
  const Chosen graph(kOneWrite + R"(
  %v1 : Float(2, 1, strides=[3, 1], device=cpu) = aten::as_strided(%s1, %column, %strides, %one)
  %w1 : Float(2, 1, strides=[1, 1], device=cpu) = aten::erf(%v1)
  %s2 : M = aten::as_strided_scatter(%s1, %w1, %column, %strides, %one)
  %t : M = aten::tanh(%s2)
  return (%t))");

  EXPECT_EQ(graph.count("as_strided_scatter"), 2);
}

TEST(ChooseWrites, NotToWhatALibraryCallReads) {
  const Chosen graph(kOneWrite + R"(
  %c : M = aten::cumsum(%e, %one, %none)
  %t : M = aten::tanh(%s1)
  return (%c, %t))");

  EXPECT_EQ(graph.count("as_strided_scatter"), 1);
  EXPECT_EQ(graph.count("where"), 0);
}

TEST(ChooseWrites, NotOfComparisonsWithNumbersThatNoKernelMakes) {
  const Chosen graph(kExp + R"(
  %i : Long(2, 3, strides=[3, 1], device=cpu) = aten::argsort(%b, %one, %false)
  %p : Bool(2, 3, strides=[3, 1], device=cpu) = aten::gt(%e, %x1)
  %v0 : Long(2, 1, strides=[3, 1], device=cpu) = aten::as_strided(%i, %column, %strides, %zero)
  %w0 : Bool(2, 1, strides=[1, 1], device=cpu) = aten::gt(%v0, %half)
  %s1 : Bool(2, 3, strides=[3, 1], device=cpu) = aten::as_strided_scatter(%p, %w0, %column, %strides, %zero)
  %t : Bool(2, 3, strides=[3, 1], device=cpu) = aten::logical_not(%s1)
  return (%t))");

  EXPECT_EQ(graph.count("as_strided_scatter"), 1);
}

TEST(ChooseWrites, NotOfRoundingToDecimals) {
  const Chosen graph(kExp + R"(
  %v0 : Float(2, 1, strides=[3, 1], device=cpu) = aten::as_strided(%e, %column, %strides, %zero)
  %w0 : Float(2, 1, strides=[1, 1], device=cpu) = aten::round(%v0, %two)
  %s1 : M = aten::as_strided_scatter(%e, %w0, %column, %strides, %zero)
  %t : M = aten::tanh(%s1)
  return (%t))");

  EXPECT_EQ(graph.count("as_strided_scatter"), 1);
  graph.expect_same_results();
}

TEST(ChooseWrites, NotOfDtypesWithoutKernels) {
  const Chosen graph(kExp + R"(
  %uint16 : int = prim::Constant[value=27]()
  %f : UInt16(2, 1, strides=[1, 1], device=cpu) = aten::full(%column, %two, %uint16, %none, %none, %none)
  %u : UInt16(2, 3, strides=[3, 1], device=cpu) = aten::_to_copy(%e, %uint16, %none, %none, %none, %false, %none)
  %s1 : UInt16(2, 3, strides=[3, 1], device=cpu) = aten::as_strided_scatter(%u, %f, %column, %strides, %zero)
  return (%s1))");

  EXPECT_EQ(graph.count("as_strided_scatter"), 1);
}

TEST(ChooseWrites, NotOfIntegerDivision) {
  const Chosen graph(kExp + R"(
  %long : int = prim::Constant[value=4]()
  %n3 : Long(requires_grad=0, device=cpu) = prim::Constant[value={3}]()
  %floor : str = prim::Constant[value="floor"]()
  %l : Long(2, 3, strides=[3, 1], device=cpu) = aten::_to_copy(%e, %long, %none, %none, %none, %false, %none)
  %v0 : Long(2, 2, strides=[3, 1], device=cpu) = aten::as_strided(%l, %columns, %strides, %zero)
  %w0 : Long(2, 2, strides=[2, 1], device=cpu) = aten::div(%v0, %n3, %floor)
  %s1 : Long(2, 3, strides=[3, 1], device=cpu) = aten::as_strided_scatter(%l, %w0, %columns, %strides, %zero)
  %t : Long(2, 3, strides=[3, 1], device=cpu) = aten::neg(%s1)
  return (%t))");

  EXPECT_EQ(graph.count("as_strided_scatter"), 1);
  graph.expect_same_results();
}

// Rows of a square matrix, of `rows` rows and columns, get those of another.
std::string a_row_of_another(int rows) {
  const std::string n = std::to_string(rows);
  const std::string type = "Float(" + n + ", " + n + ", strides=[" + n + ", 1], device=cpu)";
  const std::string row = "Float(1, " + n + ", strides=[" + n + ", 1], device=cpu)";
  return "graph(%a : " + type + ", %b : " + type + R"():
  %row : int[] = prim::Constant[value=[1, )" +
         n + R"(]]()
  %strides : int[] = prim::Constant[value=[)" +
         n + R"(, 1]]()
  %zero : int = prim::Constant[value=0]()
  %e : )" +
         type + R"( = aten::exp(%a)
  %v : )" +
         row + R"( = aten::as_strided(%b, %row, %strides, %zero)
  %s : )" +
         type + R"( = aten::as_strided_scatter(%e, %v, %row, %strides, %zero)
  %t : )" +
         type + R"( = aten::tanh(%s)
  return (%t))";
}

TEST(ChooseWrites, DoNotReadAllOfALargeArrayForARow) {
  const auto is_choice = [](int rows) {
    const auto graph =
        choose_writes(tests::parse_graph(a_row_of_another(rows)), std::vector<int64_t>{0, 0});
    return std::ranges::any_of(graph->nodes(),
                               [](const auto* node) { return node->kind() == c10::aten::where; });
  };

  EXPECT_TRUE(is_choice(64));
  EXPECT_FALSE(is_choice(1024));
}

}  // namespace
}  // namespace torch_lazy
