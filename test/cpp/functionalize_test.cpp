// What recorded windows look like without writes and view operators, rule by rule.

#include "functional_window.h"
#include "ir/node_operator.h"
#include "passes/graph_builder.h"

namespace torch_lazy {
namespace {

using tests::functional;
using tests::FunctionalWindow;
using tests::Handle;
using tests::kNone;
using tests::number;
using tests::TapeBuilder;
using Handles = TapeBuilder::Handles;

TEST(Functionalize, OperatorsThatChangeNothingStayAsTheyAre) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({2, 3}));
  const Handle y = window.call("aten::add", "Tensor", {x, number(2.5), 1})[0];
  const Handle z =
      window.call("aten::sum", "dim_IntList", {y, std::vector<int64_t>{1}, false, kNone})[0];

  EXPECT_EQ(functional(window, {z}), R"(
graph(%in0 : Float(2, 3, strides=[3, 1])):
  %1 : Double(requires_grad=0) = prim::Constant[value={2.5}]()
  %2 : int = prim::Constant[value=1]()
  %add_0 : Float(2, 3, strides=[3, 1]) = aten::add(%in0, %1, %2)
  %4 : int[] = prim::Constant[value=[1]]()
  %5 : bool = prim::Constant[value=0]()
  %6 : NoneType = prim::Constant()
  %sum_1 : Float(2, strides=[1]) = aten::sum(%add_0, %4, %5, %6)
  return (%sum_1)
)");
}

TEST(Functionalize, ValuesThatBothAreReturnedDoNotShareMemory) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({2})), y = window.input(at::randn({2}));
  const Handle a = window.call("aten::neg", "", {x})[0];
  const Handle b = window.call("aten::exp", "", {x})[0];
  window.call("aten::copy_", "", {b, a, false});
  window.call("aten::copy_", "", {y, a, false});

  EXPECT_EQ(functional(window, {a, b}), R"(
graph(%in0 : Float(2, strides=[1]),
      %in1 : Float(2, strides=[1])):
  %4 : NoneType = prim::Constant()
  %7 : bool = prim::Constant[value=0]()
  %neg_0 : Float(2, strides=[1]) = aten::neg(%in0)
  %5 : Float(2, strides=[1]) = aten::clone(%neg_0, %4)
  %6 : Float(2, strides=[1]) = aten::clone(%neg_0, %4)
  %8 : Float(2, strides=[1]) = aten::copy_(%in1, %neg_0, %7)
  return (%5, %6)
)");
}

TEST(Functionalize, AnInputCopiedBeforeItIsWrittenIsCopied) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({2})), y = window.input(at::randn({2}));
  const Handle kept = window.call("aten::neg", "", {x})[0];
  window.call("aten::copy_", "", {kept, x, false});
  window.call("aten::relu_", "", {x});
  window.call("aten::copy_", "", {y, kept, false});

  EXPECT_EQ(functional(window, {}), R"(
graph(%in0 : Float(2, strides=[1]),
      %in1 : Float(2, strides=[1])):
  %3 : NoneType = prim::Constant()
  %6 : bool = prim::Constant[value=0]()
  %4 : Float(2, strides=[1]) = aten::clone(%in0, %3)
  %5 : Float(2, strides=[1]) = aten::relu(%in0)
  %7 : Float(2, strides=[1]) = aten::copy_(%in0, %5, %6)
  %8 : Float(2, strides=[1]) = aten::copy_(%in1, %4, %6)
  return ()
)");
}

TEST(Functionalize, ResultsAreCastToWhatIsWritten) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({2})), y = window.input(at::randn({2}, at::kDouble));
  window.call("aten::add_", "Tensor", {x, y, 1});
  window.call("aten::lt_", "Tensor", {y, x});

  EXPECT_EQ(functional(window, {}), R"(
graph(%in0 : Float(2, strides=[1]),
      %in1 : Double(2, strides=[1])):
  %4 : NoneType = prim::Constant()
  %5 : int = prim::Constant[value=6]()
  %6 : bool = prim::Constant[value=0]()
  %9 : int = prim::Constant[value=7]()
  %2 : int = prim::Constant[value=1]()
  %3 : Double(2, strides=[1]) = aten::add(%in0, %in1, %2)
  %7 : Float(2, strides=[1]) = aten::_to_copy(%3, %5, %4, %4, %4, %6, %4)
  %8 : Bool(2, strides=[1]) = aten::lt(%in1, %7)
  %10 : Double(2, strides=[1]) = aten::_to_copy(%8, %9, %4, %4, %4, %6, %4)
  %11 : Float(2, strides=[1]) = aten::copy_(%in0, %7, %6)
  %12 : Double(2, strides=[1]) = aten::copy_(%in1, %10, %6)
  return ()
)");
}

TEST(Functionalize, RunningSumsAreToldTheDtypeToComputeIn) {
  TapeBuilder window;
  const Handle x = window.input(at::ones({3}, at::kInt));
  window.call("aten::cumsum_", "", {x, 0, kNone});

  EXPECT_EQ(functional(window, {}), R"(
graph(%in0 : Int(3, strides=[1])):
  %2 : int = prim::Constant[value=3]()
  %4 : bool = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=0]()
  %3 : Int(3, strides=[1]) = aten::cumsum(%in0, %1, %2)
  %5 : Int(3, strides=[1]) = aten::copy_(%in0, %3, %4)
  return ()
)");
}

TEST(Functionalize, ListsAreWrittenElementByElement) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({2})), y = window.input(at::randn({3}));
  const Handles both = window.call("aten::_foreach_neg", "", {Handles{x, y}});
  window.call("aten::_foreach_add_", "Scalar", {Handles{x, both[1]}, 2});
  window.call("aten::_foreach_copy_", "", {Handles{both[0], y}, Handles{x, both[1]}, false});

  EXPECT_EQ(functional(window, {both[0], both[1]}), R"(
graph(%in0 : Float(2, strides=[1]),
      %in1 : Float(3, strides=[1])):
  %11 : NoneType = prim::Constant()
  %14 : bool = prim::Constant[value=0]()
  %2 : Tensor[] = prim::ListConstruct(%in0, %in1)
  %foreach_neg_0_list : Tensor[] = aten::_foreach_neg(%2)
  %foreach_neg_0 : Float(2, strides=[1]), %foreach_neg_0_1 : Float(3, strides=[1]) = prim::ListUnpack(%foreach_neg_0_list)
  %6 : Tensor[] = prim::ListConstruct(%in0, %foreach_neg_0_1)
  %7 : int = prim::Constant[value=2]()
  %8 : Tensor[] = aten::_foreach_add(%6, %7)
  %9 : Float(2, strides=[1]), %10 : Float(3, strides=[1]) = prim::ListUnpack(%8)
  %12 : Float(2, strides=[1]) = aten::clone(%9, %11)
  %13 : Float(3, strides=[1]) = aten::clone(%10, %11)
  %15 : Float(2, strides=[1]) = aten::copy_(%in0, %9, %14)
  %16 : Float(3, strides=[1]) = aten::copy_(%in1, %10, %14)
  return (%12, %13)
)");
}

TEST(Functionalize, SplitsAndUnbindsAreViews) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({4, 2}));
  const Handles halves = window.call("aten::split", "Tensor", {x, 2, 0});
  const Handle sum = window.call("aten::add", "Tensor", {halves[0], halves[1], 1})[0];

  EXPECT_EQ(functional(window, {sum}), R"(
graph(%in0 : Float(4, 2, strides=[2, 1])):
  %1 : int[] = prim::Constant[value=[2, 2]]()
  %2 : int[] = prim::Constant[value=[2, 1]]()
  %3 : int = prim::Constant[value=0]()
  %5 : int = prim::Constant[value=4]()
  %4 : Float(2, 2, strides=[2, 1]) = aten::as_strided(%in0, %1, %2, %3)
  %6 : Float(2, 2, strides=[2, 1]) = aten::as_strided(%in0, %1, %2, %5)
  %7 : int = prim::Constant[value=1]()
  %add_1 : Float(2, 2, strides=[2, 1]) = aten::add(%4, %6, %7)
  return (%add_1)
)");
}

Handles batch_norm(TapeBuilder& window, bool training, const Handle& mean, const Handle& var) {
  const Handle x = window.input(at::randn({4, 2})), weight = window.input(at::ones({2}));
  return window.call("aten::native_batch_norm", "",
                     {x, weight, Handle{}, mean, var, training, 0.1, 1e-5});
}

TEST(Functionalize, StatisticsOfTrainingAreReturned) {
  TapeBuilder window;
  const Handle mean = window.input(at::zeros({2})), var = window.input(at::ones({2}));
  const Handle y = batch_norm(window, true, mean, var)[0];

  EXPECT_EQ(functional(window, {y}), R"(
graph(%in0 : Float(4, 2, strides=[2, 1]),
      %in1 : Float(2, strides=[1]),
      %in2 : Float(2, strides=[1]),
      %in3 : Float(2, strides=[1])):
  %13 : bool = prim::Constant[value=0]()
  %4 : NoneType = prim::Constant()
  %5 : bool = prim::Constant[value=1]()
  %6 : float = prim::Constant[value=0.10000000000000001]()
  %7 : float = prim::Constant[value=1.0000000000000001e-05]()
  %native_batch_norm_0 : Float(4, 2, strides=[2, 1]), %native_batch_norm_0_1 : Float(2, strides=[1]), %native_batch_norm_0_2 : Float(2, strides=[1]), %11 : Float(2, strides=[1]), %12 : Float(2, strides=[1]) = aten::_native_batch_norm_legit_functional(%in0, %in1, %4, %in2, %in3, %5, %6, %7)
  %14 : Float(2, strides=[1]) = aten::copy_(%in2, %11, %13)
  %15 : Float(2, strides=[1]) = aten::copy_(%in3, %12, %13)
  return (%native_batch_norm_0)
)");
}

TEST(Functionalize, StatisticsThatAreGivenAreOnlyRead) {
  TapeBuilder window;
  const Handle mean = window.input(at::zeros({2})), var = window.input(at::ones({2}));
  const Handle y = batch_norm(window, false, mean, var)[0];

  EXPECT_EQ(functional(window, {y}), R"(
graph(%in0 : Float(4, 2, strides=[2, 1]),
      %in1 : Float(2, strides=[1]),
      %in2 : Float(2, strides=[1]),
      %in3 : Float(2, strides=[1])):
  %4 : NoneType = prim::Constant()
  %5 : float = prim::Constant[value=0.10000000000000001]()
  %6 : float = prim::Constant[value=1.0000000000000001e-05]()
  %native_batch_norm_0 : Float(4, 2, strides=[2, 1]), %native_batch_norm_0_1 : Float(0, strides=[1]), %native_batch_norm_0_2 : Float(0, strides=[1]) = aten::_native_batch_norm_legit_no_training(%in0, %in1, %4, %in2, %in3, %5, %6)
  return (%native_batch_norm_0)
)");
}

TEST(Functionalize, WithoutStatisticsNoneAreKept) {
  TapeBuilder window;
  const Handle y = batch_norm(window, true, Handle{}, Handle{})[0];

  EXPECT_EQ(functional(window, {y}), R"(
graph(%in0 : Float(4, 2, strides=[2, 1]),
      %in1 : Float(2, strides=[1])):
  %2 : NoneType = prim::Constant()
  %3 : bool = prim::Constant[value=1]()
  %4 : float = prim::Constant[value=0.10000000000000001]()
  %5 : float = prim::Constant[value=1.0000000000000001e-05]()
  %native_batch_norm_0 : Float(4, 2, strides=[2, 1]), %native_batch_norm_0_1 : Float(2, strides=[1]), %native_batch_norm_0_2 : Float(2, strides=[1]) = aten::_native_batch_norm_legit(%in0, %in1, %2, %3, %4, %5)
  return (%native_batch_norm_0)
)");
}

TEST(Functionalize, WhatNobodyReadsIsLeftOutUnlessItCanFail) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({2, 3})), i = window.input(at::tensor({1, 0}));
  const Handle y = window.call("aten::neg", "", {x})[0];
  const Handle z = window.call("aten::exp", "", {y})[0];
  window.call("aten::mul_", "Tensor", {z, y});  // overwritten
  window.call("aten::copy_", "", {z, x, false});
  window.call("aten::index_select", "", {x, 0, i});

  EXPECT_EQ(functional(window, {z}), R"(
graph(%in0 : Float(2, 3, strides=[3, 1]),
      %in1 : Int(2, strides=[1])):
  %5 : NoneType = prim::Constant()
  %6 : Float(2, 3, strides=[3, 1]) = aten::clone(%in0, %5)
  %7 : int = prim::Constant[value=0]()
  %index_select_4 : Float(2, 3, strides=[3, 1]) = aten::index_select(%in0, %7, %in1)
  return (%6)
)");
}

TEST(Functionalize, OperatorsThatReturnUndefinedTensorsMayStay) {
  TapeBuilder window;
  const Handle grad = window.input(at::ones({2, 3})), input = window.input(at::randn({2, 3}));
  const Handle mean = window.input(at::zeros({2, 1})), rstd = window.input(at::ones({2, 1}));
  const Handles made = window.call("aten::native_layer_norm_backward", "",
                                   {grad, input, std::vector<int64_t>{3}, mean, rstd, Handle{},
                                    Handle{}, c10::List<bool>({true, false, false})});
  window.call("aten::neg_", "", {made[0]});

  EXPECT_NE(functional(window, {made[0]}).find("aten::neg(%native_layer_norm_backward_0)"),
            std::string::npos);
}

TEST(Functionalize, NodesSayWhichRecordedNodeTheyStandFor) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({2}));
  const Handle y = window.call("aten::neg", "", {x})[0];
  window.call("aten::add_", "Tensor", {x, y, 1});
  const FunctionalWindow graphs(window, {y});
  std::vector<std::string> recorded;
  for (const auto* node : graphs.recorded->nodes()) recorded.push_back(operator_name(node));

  std::vector<std::string> made;
  for (const auto* node : graphs.functional->nodes())
    if (node->hasAttribute(kOriginAttribute))
      made.push_back(operator_name(node) + " of " + recorded.at(size_t(node->i(kOriginAttribute))));

  EXPECT_EQ(made, (std::vector<std::string>{"aten::neg of aten::neg",
                                            "aten::add.Tensor of aten::add_.Tensor",
                                            "aten::copy_ of aten::add_.Tensor"}));
}

}  // namespace
}  // namespace torch_lazy
