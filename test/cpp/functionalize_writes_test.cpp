// What becomes of writes: to values, to inputs, through views and out arguments.

#include "functional_window.h"
#include "ir/node_operator.h"
#include "passes/graph_builder.h"

namespace torch_lazy {
namespace {

using tests::functional;
using tests::Handle;
using tests::kNone;
using tests::number;
using tests::TapeBuilder;

TEST(Functionalize, AWriteToAValueIsItsNextValue) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({2, 3}));
  const Handle y = window.call("aten::neg", "", {x})[0];
  window.call("aten::add_", "Tensor", {y, x, 2});

  EXPECT_EQ(functional(window, {y}), R"(
graph(%in0 : Float(2, 3, strides=[3, 1])):
  %neg_0 : Float(2, 3, strides=[3, 1]) = aten::neg(%in0)
  %2 : int = prim::Constant[value=2]()
  %3 : Float(2, 3, strides=[3, 1]) = aten::add(%neg_0, %in0, %2)
  return (%3)
)");
}

TEST(Functionalize, AnInputIsWrittenAtTheEnd) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({3}));
  window.call("aten::relu_", "", {x});
  const Handle y = window.call("aten::exp", "", {x})[0];

  EXPECT_EQ(functional(window, {y}), R"(
graph(%in0 : Float(3, strides=[1])):
  %3 : bool = prim::Constant[value=0]()
  %1 : Float(3, strides=[1]) = aten::relu(%in0)
  %exp_1 : Float(3, strides=[1]) = aten::exp(%1)
  %4 : Float(3, strides=[1]) = aten::copy_(%in0, %1, %3)
  return (%exp_1)
)");
}

TEST(Functionalize, WhatIsMadeInAnOutArgumentIsMadeLikeIt) {
  TapeBuilder window;
  const Handle x = window.input(at::zeros({3}, at::kLong));
  window.call("aten::arange", "start_out", {1, 7, 2, x});
  const Handle y = window.call("aten::neg", "", {x})[0];

  EXPECT_EQ(functional(window, {y}), R"(
graph(%in0 : Long(3, strides=[1])):
  %4 : int = prim::Constant[value=4]()
  %5 : NoneType = prim::Constant()
  %8 : bool = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=7]()
  %3 : int = prim::Constant[value=2]()
  %6 : Long(3, strides=[1]) = aten::arange(%1, %2, %3, %4, %5, %5, %5)
  %neg_1 : Long(3, strides=[1]) = aten::neg(%6)
  %9 : Long(3, strides=[1]) = aten::copy_(%in0, %6, %8)
  return (%neg_1)
)");
}

TEST(Functionalize, WhoReadBeforeAWriteKeepsTheOldValue) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({2, 3}));
  const Handle y = window.call("aten::neg", "", {x})[0];
  const Handle turned = window.call("aten::t", "", {y})[0];
  const Handle before = window.call("aten::exp", "", {turned})[0];
  window.call("aten::mul_", "Tensor", {y, y});
  const Handle after = window.call("aten::exp", "", {turned})[0];

  EXPECT_EQ(functional(window, {before, after}), R"(
graph(%in0 : Float(2, 3, strides=[3, 1])):
  %2 : int[] = prim::Constant[value=[3, 2]]()
  %3 : int[] = prim::Constant[value=[1, 3]]()
  %4 : int = prim::Constant[value=0]()
  %neg_0 : Float(2, 3, strides=[3, 1]) = aten::neg(%in0)
  %5 : Float(3, 2, strides=[1, 3]) = aten::as_strided(%neg_0, %2, %3, %4)
  %exp_2 : Float(3, 2, strides=[1, 3]) = aten::exp(%5)
  %7 : Float(2, 3, strides=[3, 1]) = aten::mul(%neg_0, %neg_0)
  %8 : Float(3, 2, strides=[1, 3]) = aten::as_strided(%7, %2, %3, %4)
  %exp_4 : Float(3, 2, strides=[1, 3]) = aten::exp(%8)
  return (%exp_2, %exp_4)
)");
}

TEST(Functionalize, AWriteThroughAViewReplacesPartOfTheBase) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({2, 3}));
  const Handle y = window.call("aten::neg", "", {x})[0];
  const Handle row = window.call("aten::select", "int", {y, 0, 1})[0];
  window.call("aten::add_", "Tensor", {row, number(1), 1});

  EXPECT_EQ(functional(window, {y}), R"(
graph(%in0 : Float(2, 3, strides=[3, 1])):
  %2 : int[] = prim::Constant[value=[3]]()
  %3 : int[] = prim::Constant[value=[1]]()
  %4 : int = prim::Constant[value=3]()
  %neg_0 : Float(2, 3, strides=[3, 1]) = aten::neg(%in0)
  %5 : Float(3, strides=[1]) = aten::as_strided(%neg_0, %2, %3, %4)
  %6 : Long(requires_grad=0) = prim::Constant[value={1}]()
  %7 : int = prim::Constant[value=1]()
  %8 : Float(3, strides=[1]) = aten::add(%5, %6, %7)
  %9 : Float(2, 3, strides=[3, 1]) = aten::as_strided_scatter(%neg_0, %8, %2, %3, %4)
  return (%9)
)");
}

TEST(Functionalize, AWriteThroughAViewOfAnInputCountsOffsetsFromTheInput) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({8}).narrow(0, 2, 6));
  const Handle part = window.call("aten::slice", "Tensor", {x, 0, 1, 3, 1})[0];
  window.call("aten::neg_", "", {part});
  const Handle y = window.call("aten::exp", "", {part})[0];

  EXPECT_EQ(functional(window, {y}), R"(
graph(%in0 : Float(6, strides=[1])):
  %1 : int[] = prim::Constant[value=[2]]()
  %2 : int[] = prim::Constant[value=[1]]()
  %3 : int = prim::Constant[value=1]()
  %9 : bool = prim::Constant[value=0]()
  %4 : Float(2, strides=[1]) = aten::as_strided(%in0, %1, %2, %3)
  %5 : Float(2, strides=[1]) = aten::neg(%4)
  %6 : Float(6, strides=[1]) = aten::as_strided_scatter(%in0, %5, %1, %2, %3)
  %7 : Float(2, strides=[1]) = aten::as_strided(%6, %1, %2, %3)
  %exp_2 : Float(2, strides=[1]) = aten::exp(%7)
  %10 : Float(6, strides=[1]) = aten::copy_(%in0, %6, %9)
  return (%exp_2)
)");
}

TEST(Functionalize, AWriteThroughAViewOfEverythingNeedsNoScatter) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({2, 3}));
  const Handle turned = window.call("aten::t", "", {x})[0];
  window.call("aten::exp_", "", {turned});
  const Handle y = window.call("aten::neg", "", {x})[0];

  EXPECT_EQ(functional(window, {y}), R"(
graph(%in0 : Float(2, 3, strides=[3, 1])):
  %1 : int[] = prim::Constant[value=[3, 2]]()
  %2 : int[] = prim::Constant[value=[1, 3]]()
  %3 : int = prim::Constant[value=0]()
  %6 : int[] = prim::Constant[value=[2, 3]]()
  %7 : int[] = prim::Constant[value=[3, 1]]()
  %11 : bool = prim::Constant[value=0]()
  %4 : Float(3, 2, strides=[1, 3]) = aten::as_strided(%in0, %1, %2, %3)
  %5 : Float(3, 2, strides=[1, 3]) = aten::exp(%4)
  %8 : Float(2, 3, strides=[3, 1]) = aten::as_strided(%5, %6, %7, %3)
  %neg_2 : Float(2, 3, strides=[3, 1]) = aten::neg(%8)
  %10 : Float(3, 2, strides=[1, 3]) = aten::as_strided(%in0, %1, %2, %3)
  %12 : Float(3, 2, strides=[1, 3]) = aten::copy_(%10, %5, %11)
  return (%neg_2)
)");
}

TEST(Functionalize, InputsThatOverlapAreWrittenAsOneRange) {
  TapeBuilder window;
  const at::Tensor base = at::randn({10});
  const Handle head = window.input(base.narrow(0, 1, 4)), tail = window.input(base.narrow(0, 3, 4));
  window.call("aten::neg_", "", {head});
  const Handle y = window.call("aten::exp", "", {tail})[0];

  EXPECT_EQ(functional(window, {y}), R"(
graph(%in0 : Float(4, strides=[1]),
      %in1 : Float(4, strides=[1])):
  %3 : int[] = prim::Constant[value=[6]]()
  %4 : int[] = prim::Constant[value=[1]]()
  %5 : int = prim::Constant[value=0]()
  %7 : int[] = prim::Constant[value=[4]]()
  %9 : int = prim::Constant[value=2]()
  %13 : bool = prim::Constant[value=0]()
  %2 : Float(4, strides=[1]) = aten::neg(%in0)
  %6 : Float(6, strides=[1]) = aten::as_strided(%in0, %3, %4, %5)
  %8 : Float(6, strides=[1]) = aten::as_strided_scatter(%6, %2, %7, %4, %5)
  %10 : Float(4, strides=[1]) = aten::as_strided(%8, %7, %4, %9)
  %exp_1 : Float(4, strides=[1]) = aten::exp(%10)
  %12 : Float(6, strides=[1]) = aten::as_strided(%in0, %3, %4, %5)
  %14 : Float(6, strides=[1]) = aten::copy_(%12, %8, %13)
  return (%exp_1)
)");
}

TEST(Functionalize, AnExpandedInputIsNotWhatIsWritten) {
  TapeBuilder window;
  const at::Tensor base = at::randn({4});
  const Handle expanded = window.input(base.expand({2, 4}));
  const Handle part = window.input(base.slice(0, 1, 3));
  const Handle before = window.call("aten::neg", "", {expanded})[0];
  window.call("aten::neg_", "", {part});

  EXPECT_EQ(functional(window, {before}), R"(
graph(%in0 : Float(2, 4, strides=[0, 1]),
      %in1 : Float(2, strides=[1])):
  %4 : int[] = prim::Constant[value=[4]]()
  %5 : int[] = prim::Constant[value=[1]]()
  %6 : int = prim::Constant[value=0]()
  %8 : int[] = prim::Constant[value=[2]]()
  %9 : int = prim::Constant[value=1]()
  %12 : bool = prim::Constant[value=0]()
  %neg_0 : Float(2, 4, strides=[4, 1]) = aten::neg(%in0)
  %3 : Float(2, strides=[1]) = aten::neg(%in1)
  %7 : Float(4, strides=[1]) = aten::as_strided(%in0, %4, %5, %6)
  %10 : Float(4, strides=[1]) = aten::as_strided_scatter(%7, %3, %8, %5, %9)
  %11 : Float(4, strides=[1]) = aten::as_strided(%in0, %4, %5, %6)
  %13 : Float(4, strides=[1]) = aten::copy_(%11, %10, %12)
  return (%neg_0)
)");
}

TEST(Functionalize, InputsThatDoNotOverlapStayApart) {
  TapeBuilder window;
  const at::Tensor base = at::randn({2, 4});
  const Handle left = window.input(base.narrow(1, 0, 2)),
               right = window.input(base.narrow(1, 2, 2));
  window.call("aten::add_", "Tensor", {left, right, 1});
  window.call("aten::neg_", "", {right});

  EXPECT_EQ(functional(window, {}), R"(
graph(%in0 : Float(2, 2, strides=[4, 1]),
      %in1 : Float(2, 2, strides=[4, 1])):
  %5 : bool = prim::Constant[value=0]()
  %2 : int = prim::Constant[value=1]()
  %3 : Float(2, 2, strides=[4, 1]) = aten::add(%in0, %in1, %2)
  %4 : Float(2, 2, strides=[4, 1]) = aten::neg(%in1)
  %6 : Float(2, 2, strides=[4, 1]) = aten::copy_(%in0, %3, %5)
  %7 : Float(2, 2, strides=[4, 1]) = aten::copy_(%in1, %4, %5)
  return ()
)");
}

TEST(Functionalize, CopiesCastAndExpand) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({2, 3})), y = window.input(at::randn({3}, at::kDouble));
  const Handle z = window.call("aten::neg", "", {x})[0];
  window.call("aten::copy_", "", {z, y, false});
  window.call("aten::copy_", "", {x, z, false});

  EXPECT_EQ(functional(window, {}), R"(
graph(%in0 : Float(2, 3, strides=[3, 1]),
      %in1 : Double(3, strides=[1])):
  %3 : NoneType = prim::Constant()
  %4 : int = prim::Constant[value=6]()
  %5 : bool = prim::Constant[value=0]()
  %7 : int[] = prim::Constant[value=[2, 3]]()
  %8 : int[] = prim::Constant[value=[0, 1]]()
  %9 : int = prim::Constant[value=0]()
  %6 : Float(3, strides=[1]) = aten::_to_copy(%in1, %4, %3, %3, %3, %5, %3)
  %10 : Float(2, 3, strides=[0, 1]) = aten::as_strided(%6, %7, %8, %9)
  %11 : Float(2, 3, strides=[3, 1]) = aten::clone(%10, %3)
  %12 : Float(2, 3, strides=[3, 1]) = aten::copy_(%in0, %11, %5)
  return ()
)");
}

TEST(Functionalize, OutArgumentsAreWritten) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({2, 2})), out = window.input(at::empty({2, 2}));
  window.call("aten::mm", "out", {x, x, out});
  const Handle values = window.call("aten::neg", "", {x})[0];
  const Handle first = window.call("aten::select", "int", {values, 0, 0})[0];
  const Handle indices =
      window.call("aten::zeros_like", "",
                  {first, c10::IValue(int64_t(at::kLong)), kNone, kNone, kNone, kNone})[0];
  window.call("aten::max", "dim_max", {x, 0, false, first, indices});

  EXPECT_EQ(functional(window, {values, indices}), R"(
graph(%in0 : Float(2, 2, strides=[2, 1]),
      %in1 : Float(2, 2, strides=[2, 1])):
  %4 : int[] = prim::Constant[value=[2]]()
  %5 : int[] = prim::Constant[value=[1]]()
  %6 : int = prim::Constant[value=0]()
  %19 : bool = prim::Constant[value=0]()
  %2 : Float(2, 2, strides=[2, 1]) = aten::mm(%in0, %in0)
  %neg_1 : Float(2, 2, strides=[2, 1]) = aten::neg(%in0)
  %14 : int = prim::Constant[value=0]()
  %15 : bool = prim::Constant[value=0]()
  %16 : Float(2, strides=[1]), %17 : Long(2, strides=[1]) = aten::max(%in0, %14, %15)
  %18 : Float(2, 2, strides=[2, 1]) = aten::as_strided_scatter(%neg_1, %16, %4, %5, %6)
  %20 : Float(2, 2, strides=[2, 1]) = aten::copy_(%in1, %2, %19)
  return (%18, %17)
)");
}

TEST(Functionalize, FillsReadNothing) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({2, 2}));
  const Handle row = window.call("aten::select", "int", {x, 0, 0})[0];
  window.call("aten::zero_", "", {row});
  const Handle y = window.call("aten::neg", "", {x})[0];
  window.call("aten::fill_", "Scalar", {x, 1.5});

  EXPECT_EQ(functional(window, {y}), R"(
graph(%in0 : Float(2, 2, strides=[2, 1])):
  %1 : int = prim::Constant[value=0]()
  %2 : NoneType = prim::Constant()
  %3 : int[] = prim::Constant[value=[2]]()
  %4 : int = prim::Constant[value=6]()
  %6 : int[] = prim::Constant[value=[1]]()
  %10 : int[] = prim::Constant[value=[2, 2]]()
  %12 : bool = prim::Constant[value=0]()
  %5 : Float(2, strides=[1]) = aten::full(%3, %1, %4, %2, %2, %2)
  %7 : Float(2, 2, strides=[2, 1]) = aten::as_strided_scatter(%in0, %5, %3, %6, %1)
  %neg_2 : Float(2, 2, strides=[2, 1]) = aten::neg(%7)
  %9 : float = prim::Constant[value=1.5]()
  %11 : Float(2, 2, strides=[2, 1]) = aten::full(%10, %9, %4, %2, %2, %2)
  %13 : Float(2, 2, strides=[2, 1]) = aten::copy_(%in0, %11, %12)
  return (%neg_2)
)");
}

TEST(Functionalize, MetadataChangedInPlaceIsAView) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({2, 3}));
  window.call("aten::t_", "", {x});
  window.call("aten::neg_", "", {x});
  const Handle y = window.call("aten::exp", "", {x})[0];

  EXPECT_EQ(functional(window, {y}), R"(
graph(%in0 : Float(2, 3, strides=[3, 1])):
  %1 : int[] = prim::Constant[value=[3, 2]]()
  %2 : int[] = prim::Constant[value=[1, 3]]()
  %3 : int = prim::Constant[value=0]()
  %8 : bool = prim::Constant[value=0]()
  %4 : Float(3, 2, strides=[1, 3]) = aten::as_strided(%in0, %1, %2, %3)
  %5 : Float(3, 2, strides=[1, 3]) = aten::neg(%4)
  %exp_2 : Float(3, 2, strides=[1, 3]) = aten::exp(%5)
  %7 : Float(3, 2, strides=[1, 3]) = aten::as_strided(%in0, %1, %2, %3)
  %9 : Float(3, 2, strides=[1, 3]) = aten::copy_(%7, %5, %8)
  return (%exp_2)
)");
}

}  // namespace
}  // namespace torch_lazy
