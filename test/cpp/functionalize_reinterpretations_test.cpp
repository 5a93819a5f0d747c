// Views of another dtype than their storage, and with conj or neg bits, become copies.

#include "functional_window.h"

namespace torch_lazy {
namespace {

using tests::functional;
using tests::Handle;
using tests::number;
using tests::TapeBuilder;

TEST(FunctionalizeReinterpretations, ViewsOfAnotherDtypeAreCopies) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({2}));
  const Handle y = window.call("aten::view", "dtype", {x, c10::IValue(int64_t(at::kInt))})[0];
  const Handle z = window.call("aten::neg", "", {y})[0];

  EXPECT_EQ(functional(window, {z}), R"(
graph(%in0 : Float(2, strides=[1])):
  %1 : int = prim::Constant[value=3]()
  %view_0 : Int(2, strides=[1]) = aten::view_copy(%in0, %1)
  %neg_1 : Int(2, strides=[1]) = aten::neg(%view_0)
  return (%neg_1)
)");
}

TEST(FunctionalizeReinterpretations, TheyHaveWhatWasWrittenBefore) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({3, 2}));
  const Handle y = window.call("aten::exp", "", {x})[0];
  window.call("aten::mul_", "Tensor", {y, number(2.0)});
  const Handle z = window.call("aten::view_as_complex", "", {y})[0];
  const Handle result = window.call("aten::mul", "Tensor", {z, z})[0];

  EXPECT_NE(functional(window, {result}).find("aten::view_as_complex_copy("), std::string::npos);
}

TEST(FunctionalizeReinterpretations, ViewsOfThemAreViews) {
  TapeBuilder window;
  const Handle x = window.input(at::randn({3, 4}, at::kComplexFloat));
  const Handle transposed = window.call("aten::t", "", {x})[0];
  const Handle conjugate = window.call("aten::_conj", "", {transposed})[0];
  const Handle row = window.call("aten::select", "int", {conjugate, 0, 1})[0];
  const Handle result = window.call("aten::mul", "Tensor", {row, row})[0];

  EXPECT_NE(functional(window, {result}).find("aten::_conj_copy("), std::string::npos);
}

}  // namespace
}  // namespace torch_lazy
